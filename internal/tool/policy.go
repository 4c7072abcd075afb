package tool

import (
	"cmp"
	"slices"
	"strings"

	"reverie/internal/llm"
)

// Policy restricts the tools of a turn. The zero value allows all.
//
// A pattern is a tool's name, or a prefix with *: "git_*"; "*" is every tool.
type Policy struct {
	Allow []string // allowed tools; empty = every tool
	Deny  []string // denied tools; overrides Allow
	Where string   // where it applies, for the model: "planning mode"
	Else  string   // how a person gets a denied tool; a clause: "`!mode developer` offers it"
}

// Allows reports whether the tool may be offered and used.
func (p Policy) Allows(name string) bool {
	fits := func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, begin)
	}
	return (len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, fits)) && !slices.ContainsFunc(p.Deny, fits)
}

// Filter returns the specs that may be offered, in order. It does not change specs.
func (p Policy) Filter(specs []llm.ToolSpec) []llm.ToolSpec {
	var out []llm.ToolSpec
	for _, s := range specs {
		if p.Allows(s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// refuse explains to the model that the tool exists, but not in this turn.
func (p Policy) refuse(name string, offered []string) error {
	text := name + " is not offered in " + cmp.Or(p.Where, "this turn") + ", so nothing was done. "
	if len(offered) > 0 {
		text += "Do without it; the tools are: " + strings.Join(offered, ", ") + "."
	} else {
		text += "There are no tools here: answer in words."
	}
	if p.Else != "" {
		text += " If the person needs it, tell them that " + p.Else + "."
	}
	return refusal(text)
}
