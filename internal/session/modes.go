package session

import (
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/tool"
)

// A mode is a way of working: which template the prompt has, how freely the model
// writes, which tools there are, which models are asked. It is no permission:
// anybody who may talk to the bot may choose it, so who may do what with a tool is
// for that tool to say.
type mode struct {
	name        string
	templates   string // the folder in data/prompts
	temperature float32
	role        string   // of the models, in llm.roles; without one there it is as chat
	allow       []string // tools, as in tool.Policy
	deny        []string
}

// modes is all the modes; the first is where every room begins. Names may stand
// here of tools that there are not yet.
//
//   - everyday modes have every tool but those that work on the machine itself;
//   - planning is closed: what does not stand there, it has not. A tool of a
//     connected server may write anything, and its name does not say so;
//   - debugger finds out what is wrong, and leaves what was there in place.
var modes = []mode{
	// name, templates, temperature, role, allow, deny
	{"assistant", "assistant", 0.5, "chat", nil, handsOn},
	{"developer", "developer", 0.1, "developer", nil, nil},
	{"planning", "planning", 0.3, "planning", []string{
		"append_memory", "memory_*", "recall*", "search_memory", "task", "goal", tool.StaySilent, tool.SetMode, "read_*", "list_*", "find_*", "grep_*", "search_*",
		"get_diagnostics", "web_search", "web_fetch"}, nil},
	{"debugger", "debugger", 0.1, "debugger", nil, []string{"delete_file", "git_commit", "git_push"}},
	{"user", "user", 0.3, "user", nil, handsOn},
}

// handsOn are the tools that work on the machine itself: commands and files.
var handsOn = []string{
	"shell", "shell_*", "execute_*", "control_*", "process_*", "write_file", "edit_file", "str_replace", "fs_*", "delete_file", "move_file", "git_*",
}

// Modes lists the names of the modes; the first is the one every room begins in.
func Modes() []string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = m.name
	}
	return names
}

// ModeRoles lists the roles that models can have for the sake of a mode; those
// that are not configured are as chat.
func ModeRoles() []string {
	var roles []string
	for _, m := range modes {
		if m.role != chatRole {
			roles = append(roles, m.role)
		}
	}
	return roles
}

const chatRole = "chat"

// modeNamed finds a mode by its name, in any case.
func modeNamed(name string) (mode, bool) {
	i := slices.IndexFunc(modes, func(m mode) bool { return strings.EqualFold(m.name, name) })
	if i < 0 {
		return modes[0], false
	}
	return modes[i], true
}

// roleName is the role without the model that a room may prefer.
func (m mode) roleName() string {
	own, _ := modeNamed(m.name)
	return own.role
}

// policy is which tools there are in the mode.
func (m mode) policy() tool.Policy {
	p := tool.Policy{Allow: m.allow, Deny: m.deny, Where: m.name + " mode"}
	if free := slices.IndexFunc(modes, func(o mode) bool { return len(o.allow)+len(o.deny) == 0 }); free >= 0 {
		p.Else = "`!mode " + modes[free].name + "` offers it"
	}
	return p
}

// offer is the tools that a model is told about.
type offer struct {
	specs  []llm.ToolSpec
	names  []string
	tokens int // what the descriptions take
}

// costly are tools that the smallest windows have no room to describe, and that a
// model can do without (it reports on its goal in lines of its text), and from which
// tier on they are offered.
var costly = map[string]int{"goal": 2, "search_memory": 2, tool.StaySilent: 2, tool.SpawnSubSession: 3, tool.SendFile: 2, tool.SetMode: 4}

const topTier = 5

// toolBudget is how many tokens the descriptions of tools may take, by tier; 0 is a tier that is not known.
// A tool that comes later in the catalog and does not fit any more is not offered there.
var toolBudget = [topTier + 1]int{8000, 600, 2000, 3000, 5000, 8000}

// offers is the tools of each mode by its name, and of each tier: the smallest gets brief
// descriptions, the others full ones. helpers tells whether there are sub-sessions.
func offers(full, brief []llm.ToolSpec, helpers bool) map[string][topTier + 1]offer {
	out := map[string][topTier + 1]offer{}
	for _, m := range modes {
		var of [topTier + 1]offer
		for tier := range of {
			all := full
			if tier == 1 {
				all = brief
			}
			for _, s := range m.policy().Of(all) {
				if (tier == 0 || tier >= costly[s.Name]) && (helpers || s.Name != tool.SpawnSubSession) && of[tier].tokens+tokensOf(s) <= toolBudget[tier] {
					of[tier].add(s)
				}
			}
		}
		out[m.name] = of
	}
	return out
}

func (o *offer) add(s llm.ToolSpec) {
	o.specs = append(o.specs, s)
	o.names = append(o.names, s.Name)
	o.tokens += tokensOf(s)
}

func tokensOf(s llm.ToolSpec) int {
	return llm.EstimateTokens(s.Name) + llm.EstimateTokens(s.Description) + llm.EstimateTokens(string(s.Parameters))
}
