package section

import (
	"cmp"
	"context"
	"strings"

	"reverie/internal/trust"
	"reverie/internal/voice"
)

const soulFile = "SOUL.md"

// gatherSoul gathers the owner's own words, without their lines of style.
func gatherSoul(_ context.Context, q *Question) (*Content, error) {
	t, _ := q.styled(soulFile)
	return q.textContent(soulFile, q.fill(t.text))
}

// gatherPersona gathers a line on the assistant's character, and the persona.
func gatherPersona(_ context.Context, q *Question) (*Content, error) {
	file, t, _ := q.persona()
	t.text = strings.ReplaceAll(t.text, "{name}", q.sources.Name)
	c := q.part(t, file, all)
	var is []string
	for _, of := range voice.Character.ResolveLayers(voice.Layer{Style: q.sources.Voice.Character}) {
		is = append(is, of.Rule)
	}
	if len(is) > 0 {
		c.Lines = append(linesOf(trust.Owner, strings.Join(is, " ")), c.Lines...)
	}
	return q.contentOrNil(*c)
}

// gatherStyle gathers a rule for each field of style that a layer sets.
func gatherStyle(_ context.Context, q *Question) (*Content, error) {
	c := Content{Source: "style", Choices: q.style(), None: "No rules of style hold any more."}
	for _, choice := range c.Choices {
		c.Lead = "The newest of these lists goes before other rules on style:"
		c.Lines = append(c.Lines, linesOf(trust.Owner, "- "+choice.Rule)...)
	}
	return q.contentOrNil(c)
}

// style returns the fields of style that a layer of the owner sets.
func (q *Question) style() []voice.Choice {
	_, soul := q.styled(soulFile)
	file, _, persona := q.persona()
	return voice.Speech.ResolveLayers(voice.Layer{Source: soulFile, Style: soul}, voice.Layer{Source: file, Style: persona},
		voice.Layer{Source: "configuration", Style: q.sources.Voice.Style})
}

// persona returns the file of the room's persona with its text and style, all empty without one.
func (q *Question) persona() (file string, t *text, style voice.Style) {
	name := cmp.Or(q.turn.Persona, q.sources.Voice.Persona, voice.None)
	if name == voice.None {
		return "", &text{}, nil
	}
	file = voice.PersonaFile(name)
	if t, style = q.styled(file); t.problem == missing {
		q.Problem(file, 0, "is missing; write it, or choose another persona with !persona or in the configuration")
	}
	return file, t, style
}

// styled reads an optional file that may begin with lines of style.
func (q *Question) styled(file string) (*text, voice.Style) {
	t := q.sources.read(file)
	if t.problem != "" && t.problem != missing {
		q.Problem(file, 0, t.problem)
	}
	style, rest, problems := voice.SplitOffStyle(t.text)
	for _, p := range problems {
		q.Problem(file, p.Line, p.Text)
	}
	t.text = rest
	return t, style
}
