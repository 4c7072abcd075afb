package settings

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/store"
)

// A Mode is a way of working. It grants no permissions: anyone who may talk to the bot can choose
// it, so tools check their callers themselves.
type Mode struct {
	Name        string // also names its folder in data/prompts
	Temperature float32
	Role        string   // model role in llm.roles; chat if not configured
	Allow       []string // tools, as in tool.Policy
	Deny        []string
}

// modes lists all modes; every room starts in the first. Unknown tool names are allowed.
//
//   - everyday modes have every tool except those that work on the machine;
//   - planning is an allowlist, because a connected server's tool may write anything;
//   - debugger may not delete files or publish.
var modes = []Mode{
	// name, temperature, role, allow, deny
	{"assistant", 0.5, "chat", nil, machineTools},
	{"developer", 0.1, "developer", nil, nil},
	{"planning", 0.3, "planning", []string{
		"append_memory", "memory_*", "recall*", "search_memory", "task", "goal", "stay_silent", "ask_person", "ask_advisors", "set_mode",
		"set_model", "read_*", "list_*", "find_*", "grep_*", "search_*", "get_diagnostics", "web_search", "web_fetch", "run_code"}, nil},
	{"debugger", 0.1, "debugger", nil, []string{"delete_file", "git_commit", "git_push"}},
	{"user", 0.3, "user", nil, machineTools},
}

// machineTools are the tools that work on the machine itself: commands and files.
var machineTools = []string{
	"shell", "shell_*", "execute_*", "control_*", "process_*", "write_file", "edit_file", "str_replace",
	"fs_*", "delete_file", "move_file", "git_*",
}

// Modes lists the modes; every room starts in the first.
func Modes() []Mode { return slices.Clone(modes) }

// ModeNames lists the names of the modes.
func ModeNames() []string {
	return store.Map(modes, func(m Mode) string { return m.Name })
}

// ModeRoles lists the model roles of the modes except chat. Unconfigured ones fall back to chat.
func ModeRoles() []string {
	return store.Map(modes[1:], func(m Mode) string { return m.Role })
}

// FindMode finds a mode by its name, ignoring case.
func FindMode(name string) (Mode, bool) {
	i := slices.IndexFunc(modes, func(m Mode) bool { return strings.EqualFold(m.Name, name) })
	if i < 0 {
		return modes[0], false
	}
	return modes[i], true
}

// RoomMode is the mode of a room with what else people chose for its answers.
type RoomMode struct {
	Mode
	Chosen Choice // who chose it, and when
	Think  llm.Think
	Role   string // the mode's role, with Model preferred
	Model  string // chosen for the room; "" = none

	Persona string // chosen for the room; "" = as configured

	Context, Streaming string // the settings of these names
}

// RoomMode reads the mode of room. An unknown mode counts as the first, a model not in models as none.
func (s Store) RoomMode(ctx context.Context, room string, models []string) (RoomMode, error) {
	m := RoomMode{Mode: modes[0]}
	set, err := s.Choices(ctx, room)
	if err != nil {
		return m, err
	}
	if chosen, ok := FindMode(set[ModeName].Value); ok {
		m.Mode, m.Chosen = chosen, set[ModeName]
	}
	m.Think, m.Persona = llm.Think(set[ThinkLevel].Value), set[PersonaName].Value
	if model := set[ModelName].Value; slices.Contains(models, model) {
		m.Model = model
	}
	m.Role = llm.Preferring(m.Mode.Role, m.Model)
	all := Effective(set)
	m.Context, m.Streaming = all[Context], all[Streaming]
	return m, nil
}
