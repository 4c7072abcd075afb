package llm

import (
	"fmt"
	"slices"
	"strings"

	"reverie/internal/lazyregexp"
)

// Think is how much a model is to think before it answers.
type Think string

// The levels. "" leaves it to the server.
const (
	thinkDefault Think = ""
	ThinkOff     Think = "off"
	thinkLow     Think = "low"
	thinkMedium  Think = "medium"
	thinkHigh    Think = "high"
)

var thinkLevels = []Think{ThinkOff, thinkLow, thinkMedium, thinkHigh}

// ParseThink parses a level in any case. "default" is "". The error lists the
// choices.
func ParseThink(s string) (Think, error) {
	t := Think(strings.ToLower(strings.TrimSpace(s)))
	switch {
	case t == thinkDefault || t == "default":
		return thinkDefault, nil
	case slices.Contains(thinkLevels, t):
		return t, nil
	}
	return thinkDefault, fmt.Errorf("%q is no thinking level: choose off, low, medium, high or default", s)
}

// AcceptsThinking reports whether the role's first model takes a thinking level as a parameter. It
// reports what is known. It is false once the server refused one: then only words in the prompt set
// the level.
func (m *Models) AcceptsThinking(role string) bool {
	l := m.failoverList(role)
	return len(l) == 0 || l[0].knownQuirks()&noThink == 0
}

// noEffort means "do not think" to Ollama, vLLM, llama.cpp, OpenRouter and OpenAI's newer models.
const noEffort = "none"

// effort returns the level as the protocol spells it; "" = leave it out. A model that cannot stop
// thinking gets the lowest level.
func effort(t Think, q quirk) string {
	switch {
	case t == thinkDefault:
		return ""
	case t == ThinkOff && q&noThinkOff == 0:
		return noEffort
	case q&noThink != 0:
		return ""
	case t == ThinkOff:
		return string(thinkLow)
	}
	return string(t)
}

// templateArgs are arguments for the chat templates of local servers. Older versions of vLLM,
// SGLang and llama.cpp know only this way to turn thinking off.
func templateArgs(t Think, q quirk) map[string]any {
	if t != ThinkOff || q&noTemplateArgs != 0 {
		return nil
	}
	return map[string]any{"enable_thinking": false}
}

// optionalParts returns the dispensable parts that a request contains. Each is the quirk that
// leaves it out.
func (m *model) optionalParts(req Request, q quirk) (parts quirk) {
	switch effort(req.Think, q) {
	case "":
	case noEffort:
		parts |= noThinkOff
	default:
		parts |= noThink
	}
	if templateArgs(req.Think, q) != nil {
		parts |= noTemplateArgs
	}
	if m.temperature(req, q) != nil {
		parts |= noTemperature
	}
	if q&noPictures == 0 && hasPictures(req) {
		parts |= noPictures
	}
	if len(m.cacheMarks(req, m.messages(req, q), q)) > 0 {
		parts |= noMarks
	}
	return parts
}

// thinkTag matches the tags that some models put around their thinking.
var thinkTag = lazyregexp.New(`(?i)</?think(?:ing)?>`)

// thoughts describes the thinking found in an answer.
type thoughts struct {
	thought  bool // there was some
	unopened bool // a closing tag had no opening one
}

// stripThinking returns the text without the model's thinking. While ended is false the text still
// grows, and what may become thinking is withheld. The rules:
func stripThinking(text string, ended bool) (answer string, found thoughts) {
	var out strings.Builder
	at, open := 0, -1 // where visible text continues, and where the open block starts
	note := func(s string) { found.thought = found.thought || strings.TrimSpace(s) != "" }
	for _, tag := range thinkTag().FindAllStringIndex(text, -1) {
		closing := text[tag[0]+1] == '/'
		switch {
		case open < 0 && insideCode(out.String()+text[at:tag[0]]), open >= 0 && !closing: // words
		case open >= 0:
			note(text[open:tag[0]])
			at, open = tag[1], -1
		case closing:
			note(out.String() + text[at:tag[0]])
			out.Reset()
			at, found.unopened = tag[1], true
		default:
			out.WriteString(text[at:tag[0]])
			at, open = tag[0], tag[1]
		}
	}
	line := out.String()
	line = line[strings.LastIndexByte(line, '\n')+1:]
	switch {
	case open >= 0 && strings.TrimSpace(line) == "":
		note(text[open:])
	case ended:
		out.WriteString(text[at:])
	case open < 0:
		out.WriteString(text[at : len(text)-partialTagLen(text[at:])])
	}
	return strings.TrimSpace(out.String()), found
}

// partialTagLen returns the length of an incomplete tag at the end of s.
func partialTagLen(s string) int {
	i := strings.LastIndexByte(s, '<')
	if i < 0 {
		return 0
	}
	for _, tag := range []string{"<thinking>", "</thinking>", "<think>", "</think>"} {
		if half := s[i:]; len(half) < len(tag) && strings.EqualFold(half, tag[:len(half)]) {
			return len(half)
		}
	}
	return 0
}

// insideCode reports whether a tag after s would be inside code.
func insideCode(s string) bool {
	line := s[strings.LastIndexByte(s, '\n')+1:]
	return strings.Count(line, "`")%2 == 1 || insideFence(s)
}

// insideFence reports whether s ends inside a fenced code block.
func insideFence(s string) bool {
	in := false
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			in = !in
		}
	}
	return in
}
