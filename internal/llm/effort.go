package llm

import (
	"fmt"
	"slices"
	"strings"
)

// Think is how much a model shall think before it answers.
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

// ParseThink reads a level as people write it, in any case. "default" and
// nothing are ThinkDefault. Its error lists the choices.
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

// Thinks reports whether the role's first model takes a thinking level as a
// parameter, as far as is known. It is false once its server refused one: then
// only words in the prompt tell the model how much to think.
func (m *Models) Thinks(role string) bool {
	l := m.list(role)
	return len(l) == 0 || l[0].known()&noThink == 0
}

// noEffort is the word for "do not think" that Ollama, vLLM, llama.cpp,
// OpenRouter and OpenAI's newer models have in common.
const noEffort = "none"

// effort is the level in the words of the protocol; empty = say nothing. A model
// that cannot stop thinking is asked for as little as it can.
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

// templateArgs are for the chat templates of local servers. vLLM, SGLang and
// llama.cpp did without the common word for a long time and only knew this one.
func templateArgs(t Think, q quirk) map[string]any {
	if t != ThinkOff || q&noTemplateArgs != 0 {
		return nil
	}
	return map[string]any{"enable_thinking": false}
}

// optional says which of the parts a request can do without it holds, each as
// the quirk that leaves it out.
func (m *model) optional(req Request, q quirk) (parts quirk) {
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
	if q&noPictures == 0 && pictured(req) {
		parts |= noPictures
	}
	if len(m.marks(req, m.messages(req, q), q)) > 0 {
		parts |= noMarks
	}
	return parts
}
