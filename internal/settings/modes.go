package settings

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/llm"
)

// A Mode is a way of working. It is no permission: anybody who may talk to the bot may choose it,
// so who may do what with a tool is for that tool to say.
type Mode struct {
	Name        string // also of the folder in data/prompts
	Temperature float32
	Role        string   // of the models, in llm.roles; without one there it is as chat
	Allow       []string // tools, as in tool.Policy
	Deny        []string
}

// modes is all the modes; the first is where every room begins. Names may stand
// here of tools that there are not yet.
//
//   - everyday modes have every tool but those that work on the machine itself;
//   - planning is closed: what does not stand there, it has not. A tool of a
//     connected server may write anything, and its name does not say so;
//   - debugger finds out what is wrong, and leaves what was there in place.
var modes = []Mode{
	// name, temperature, role, allow, deny
	{"assistant", 0.5, "chat", nil, handsOn},
	{"developer", 0.1, "developer", nil, nil},
	{"planning", 0.3, "planning", []string{
		"append_memory", "memory_*", "recall*", "search_memory", "task", "goal", "stay_silent", "set_mode", "read_*", "list_*", "find_*",
		"grep_*", "search_*", "get_diagnostics", "web_search", "web_fetch"}, nil},
	{"debugger", 0.1, "debugger", nil, []string{"delete_file", "git_commit", "git_push"}},
	{"user", 0.3, "user", nil, handsOn},
}

// handsOn are the tools that work on the machine itself: commands and files.
var handsOn = []string{
	"shell", "shell_*", "execute_*", "control_*", "process_*", "write_file", "edit_file", "str_replace",
	"fs_*", "delete_file", "move_file", "git_*",
}

// Modes lists the modes; the first is the one every room begins in.
func Modes() []Mode { return slices.Clone(modes) }

// ModeNames lists their names.
func ModeNames() []string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = m.Name
	}
	return names
}

// ModeRoles lists the roles that models can have for the sake of a mode; those
// that are not configured are as chat.
func ModeRoles() []string {
	var roles []string
	for _, m := range modes[1:] {
		roles = append(roles, m.Role)
	}
	return roles
}

// ModeNamed finds a mode by its name, in any case.
func ModeNamed(name string) (Mode, bool) {
	i := slices.IndexFunc(modes, func(m Mode) bool { return strings.EqualFold(m.Name, name) })
	if i < 0 {
		return modes[0], false
	}
	return modes[i], true
}

// Current is the mode of a room, and how much the model is to think there.
type Current struct {
	Mode
	Chosen Decided // who chose it, and when; what a person edits in user mode takes effect with the next time
	Think  llm.Think
	Role   string // that of the mode, with Model before its models
	Model  string // that was chosen for the room, and is in its role; "" = none
}

// Current reads the mode of room, where there are models. A mode that there is no more is the first
// one, and a model none.
func (s Store) Current(ctx context.Context, room string, models []string) (Current, error) {
	m := Current{Mode: modes[0]}
	set, err := s.Stored(ctx, room)
	if err != nil {
		return m, err
	}
	if chosen, ok := ModeNamed(set[ModeName].Value); ok {
		m.Mode, m.Chosen = chosen, set[ModeName]
	}
	m.Think = llm.Think(set[ThinkLevel].Value)
	if model := set[ModelName].Value; slices.Contains(models, model) {
		m.Model = model
	}
	m.Role = llm.Preferring(m.Mode.Role, m.Model)
	return m, nil
}
