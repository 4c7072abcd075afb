package tool

import (
	"strings"
	"testing"

	"reverie/internal/llm"
)

func TestPolicyAllows(t *testing.T) {
	for _, tt := range []struct {
		allow, deny string
		yes, no     string
	}{
		{"", "", "task shell mcp:a:b", ""},
		{"*", "", "task shell mcp:a:b", ""},
		{"task", "", "task", "tasks Task tas mcp:task"},
		{"git_*", "", "git_log git_commit", "git gitlog my_git_log"},
		{"mcp:*", "", "mcp:calendar:add", "mcp mcp_calendar task"},
		{"mcp:calendar:*", "", "mcp:calendar:add", "mcp:files:read"},
		{"", "*", "", "task shell"},
		{"", "shell git_*", "task", "shell git_log"},
		{"task git_*", "git_commit", "task git_log", "git_commit shell"},
		{"task", "task", "", "task"}, // what is denied stays so
		{"t*sk", "", "", "task"},     // a * stands at the end
	} {
		p := Policy{Allow: strings.Fields(tt.allow), Deny: strings.Fields(tt.deny)}
		for _, name := range strings.Fields(tt.yes) {
			if !p.Allows(name) {
				t.Errorf("%+v does not allow %s", p, name)
			}
		}
		for _, name := range strings.Fields(tt.no) {
			if p.Allows(name) {
				t.Errorf("%+v allows %s", p, name)
			}
		}
	}
}

// TestPolicyHolds: what may not be used is neither offered nor run, and the model
// reads what to do instead.
func TestPolicyHolds(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	scope.Policy = Policy{Deny: []string{"append_*", "add_skill"}, Where: "planning mode", Else: "`!mode developer` offers it"}
	offered := scope.Policy.Of(w.Specs())
	if len(offered) != len(w.Specs())-2 || offered[0].Name != "search_memory" {
		t.Errorf("offered: %+v", offered)
	}
	wants(t, w.bad(t, scope, "append_memory", `{"entry": "Ada likes tea."}`),
		"append_memory is not offered in planning mode, so nothing was done.", "the tools are: search_memory, task, ", "tell them that `!mode developer` offers it.")
	if entries, err := w.cfg.Memory.Entries(t.Context(), scope.Memory...); err != nil || len(entries) != 0 {
		t.Errorf("it was done: %v, %v", entries, err)
	}
	if got := w.bad(t, scope, "append_memories", `{}`); !strings.HasPrefix(got, "There is no tool") || strings.Contains(got, "append_memory,") {
		t.Errorf("unknown: %s", got)
	}
	w.ok(t, scope, "task", `{"action": "list"}`)
	scope.Policy = Policy{Deny: []string{"*"}}
	wants(t, w.bad(t, scope, "task", `{"action": "list"}`), "task is not offered in this turn", "There are no tools here: answer in words.")
	if got := scope.Policy.Of([]llm.ToolSpec{{Name: "task"}}); got != nil {
		t.Errorf("offered: %v", got)
	}
}
