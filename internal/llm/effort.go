package llm

import (
	"fmt"
	"slices"
	"strings"
)

// Think is how much a model is to think before it answers.
type Think string

// The levels. ThinkDefault leaves it to the server.
const (
	ThinkDefault Think = ""
	ThinkOff     Think = "off"
	thinkLow     Think = "low"
	thinkMedium  Think = "medium"
	thinkHigh    Think = "high"
)

var thinkLevels = []Think{ThinkOff, thinkLow, thinkMedium, thinkHigh}

// ParseThink parses a level in any case. "default" and "" are ThinkDefault. The error lists the
// choices.
func ParseThink(s string) (Think, error) {
	t := Think(strings.ToLower(strings.TrimSpace(s)))
	switch {
	case t == ThinkDefault || t == "default":
		return ThinkDefault, nil
	case slices.Contains(thinkLevels, t):
		return t, nil
	}
	return ThinkDefault, fmt.Errorf("%q is no thinking level: choose off, low, medium, high or default", s)
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
	case t == ThinkDefault:
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
