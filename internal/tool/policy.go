package tool

import (
	"cmp"
	"slices"
	"strings"

	"reverie/internal/llm"
)

// Policy says which of the tools there are for a turn. The zero value holds none
// back.
//
// A pattern is a tool's name, or the beginning of names with a * at its end:
// "git_*"; "*" is every tool.
type Policy struct {
	Allow []string // who may be used; empty = every tool
	Deny  []string // who may not, whatever Allow says
	Where string   // where it holds, for the model: "planning mode"
	Else  string   // what the person can do to get what is denied; a clause: "`!mode developer` offers it"
}

// Allows reports whether the tool may be offered and used.
func (p Policy) Allows(name string) bool {
	fits := func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, begin)
	}
	return (len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, fits)) && !slices.ContainsFunc(p.Deny, fits)
}

// Of returns those of specs that may be offered, in their order; specs stays as it is.
func (p Policy) Of(specs []llm.ToolSpec) []llm.ToolSpec {
	var out []llm.ToolSpec
	for _, s := range specs {
		if p.Allows(s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// refuse tells the model about a call of a tool that there is, but not for this turn.
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
