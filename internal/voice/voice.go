// Package voice resolves how the assistant speaks. Several layers set fields of style: SOUL.md, a
// persona, the configuration. The first layer that sets a field decides it.
package voice

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
	"reverie/internal/store"
)

// Voice is who the assistant is and how it speaks, as the owner chose it.
type Voice struct {
	Persona   string `yaml:"persona"` // the default of rooms; "" = none
	Character Style  `yaml:"character"`
	Style     Style  `yaml:"style"`

	Dir string // the data folder
}

// None is the choice of no persona.
const None = "none"

// PersonaFile returns the path of a persona in the data folder.
func PersonaFile(name string) string { return "personas/" + name + ".md" }

// nameForm is the form of names that a command can have.
var nameForm = lazyregexp.New(`^[\pL\pN][\pL\pM\pN_-]*$`)

// PersonaNames lists the personas in the data folder, by name.
func (v Voice) PersonaNames() (names []string) {
	files, _ := filepath.Glob(filepath.Join(v.Dir, PersonaFile("*"))) // sorted; the pattern is valid
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".md"); nameForm().MatchString(name) && utf8.RuneCountInString(name) <= 32 {
			names = append(names, name)
		}
	}
	return names
}

// Style holds values by field.
type Style map[string]string

// Layer is one source of style.
type Layer struct {
	Source string // for the owner: a file, or configuration
	Style  Style
}

// FieldSet are fields with their values, in the order of the prompt.
type FieldSet []struct {
	name   string
	values []string // nil = a few words
	rules  []string // what each value tells the model; for words one, with %s
}

// Character has the fields that say who the assistant is.
var Character = FieldSet{
	{"creature", nil, []string{"You are %s."}}, {"role", nil, []string{"Your relationship to the person: %s."}},
	{"vibe", nil, []string{"Your vibe: %s."}}, {"emoji", nil, []string{"Your sign is %s"}},
}

// Speech has the fields of how it speaks. Small models follow rules that are concrete and positive.
var Speech = FieldSet{
	{"voice", []string{"warm", "neutral", "playful", "direct"}, []string{
		"When the person tells of themselves, answer to that first.", "Keep to the matter.",
		"Add one light remark or image where the subject allows it.", "State your opinion in the first sentence."}},
	{"formality", []string{"formal", "neutral", "casual"}, []string{
		"Use full sentences and the polite address (Sie, vous, usted).", "Address the person as they address you.",
		"Use everyday words and the familiar address (du, tu)."}},
	{"emoji", []string{"none", "few", "many"}, []string{
		"Use words only, no emoji.", "Use at most one emoji in an answer.", "Use one or two emoji in most answers."}},
	{"length", []string{"short", "medium", "long"}, []string{
		"Answer in one to three sentences; more when asked.", "Answer in one or two short paragraphs.",
		"Answer in full: the result, the reasons, an example."}},
	{"proactivity", []string{"low", "medium", "high"}, []string{
		"Do what is asked, and stop there.", "Offer one next step when it clearly helps.", "End with the next step, and offer to do it."}},
	{"address", nil, []string{"Address the person with: %s."}}, {"language", nil, []string{"Answer in this language: %s."}},
}

var words = lazyregexp.New(`^[^\p{Cc}<>[\]]+$`)

// ValueRemedy returns what to write instead of a wrong field or value; "" = the value is right.
func (fields FieldSet) ValueRemedy(name, value string) string {
	var known []string
	for _, f := range fields {
		known = append(known, f.name)
		switch {
		case f.name != name:
		case slices.Contains(f.values, value), f.values == nil && words().MatchString(value) && utf8.RuneCountInString(value) <= 60:
			return ""
		case f.values == nil:
			return "write a few words, 60 characters at most"
		default:
			return "write one of: " + strings.Join(f.values, ", ")
		}
	}
	return "unknown; write one of: " + strings.Join(known, ", ")
}

// Choice is the value of a field, and the layer that decides it.
type Choice struct {
	Field   string   `json:"field"`
	Value   string   `json:"value"`
	Source  string   `json:"source"`
	Rule    string   `json:"rule,omitempty"`       // what the model is told; "" = nothing, another layer decides
	Instead []Choice `json:"instead_of,omitempty"` // other values of later layers
}

// ResolveLayers returns a value for each field that some layer sets: the value of the first layer that sets it.
// Values that ValueRemedy refuses do not count.
func (fields FieldSet) ResolveLayers(layers ...Layer) (all []Choice) {
	for _, f := range fields {
		var c Choice
		for _, l := range layers {
			value := l.Style[f.name]
			if value == "" || value == c.Value || fields.ValueRemedy(f.name, value) != "" {
				continue
			}
			if found := (Choice{Field: f.name, Value: value, Source: l.Source}); c.Field == "" {
				c = found
			} else {
				c.Instead = append(c.Instead, found)
			}
		}
		if c.Field != "" {
			c.Rule = strings.ReplaceAll(f.rules[max(0, slices.Index(f.values, c.Value))], "%s", c.Value)
			all = append(all, c)
		}
	}
	return all
}

// keyLine matches a line such as "length: short  # as I like it".
var keyLine = lazyregexp.New(`^\s*(\pL+):\s*["']?(.*?)["']?\s*(?:\s#.*)?$`)

// SplitOffStyle takes the style that the first lines of a text set, between two lines ---, off the text. In the
// rest, empty lines stand for them. A text without such lines may begin with a ruler of Markdown.
func SplitOffStyle(text string) (style Style, rest string, problems []store.Problem) {
	head, body, closed := strings.Cut(text+"\n", "\n---\n")
	lines := strings.Split(head, "\n")
	switch {
	case lines[0] != "---" || len(lines) < 2 || !keyLine().MatchString(lines[1]):
		return nil, text, nil
	case !closed:
		return nil, text, []store.Problem{{Line: 1, Text: "the lines of style have no end; write --- below them"}}
	}
	style = Style{}
	for i, line := range lines[1:] {
		m := keyLine().FindStringSubmatch(line)
		if m == nil {
			m = []string{"", strings.TrimSpace(line), ""}
		}
		switch remedy := Speech.ValueRemedy(m[1], m[2]); {
		case m[1] == "" || m[1][0] == '#': // a comment
		case remedy != "":
			problems = append(problems, store.Problem{Line: i + 2, Text: m[1] + ": " + remedy})
		default:
			style[m[1]] = m[2]
		}
	}
	return style, strings.Repeat("\n", len(lines)+1) + body, problems
}
