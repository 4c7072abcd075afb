package tool

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/test/expect"
	"reverie/internal/test/process"
	"reverie/internal/trust"
)

// survivors lists the processes with the mark of these tests.
func survivors() []string { return process.Running("sleep 471504") }

var startedID = regexp.MustCompile(`^Started in the background as (cmd_\w+), for at most 1m0s; see shell_status\.$`)

// TestBackgroundCommands: an approved command goes on in the background; its room looks at its output and
// ends it, no other does; it ends with the bot.
func TestBackgroundCommands(t *testing.T) {
	needsGuard(t)
	w := withCommands(t, "*", group().Room)
	w.Set.cfg.Commands.Background = time.Minute
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- RunBackground(ctx, w.Set) }()

	approved := func(scope Scope, command string) Result {
		t.Helper()
		call := llm.ToolCall{ID: "1", Name: Shell, Arguments: string(quoted(map[string]any{"command": command, "background": true}))}
		act, ask := w.NeedsApproval(scope, call)
		expect.False(t, !ask || !strings.HasSuffix(act.Shown[2], ", in the background for up to 1m0s"), "asks %t: %q", ask, act.Shown)
		expect.Has(t, w.bad(t, scope, Shell, call.Arguments), "an owner must agree to exactly this")
		scope.Granted = act.Grants()
		return w.call(t, scope, Shell, call.Arguments)
	}
	start := func(scope Scope, command string) string {
		t.Helper()
		got := approved(scope, command)
		id := startedID.FindStringSubmatch(got.Content)
		if got.Failed || id == nil || got.Integrity != trust.Owner {
			t.Fatalf("got %+v", got)
		}
		return id[1]
	}
	look := func(scope Scope, id string, end bool) Result {
		t.Helper()
		call := llm.ToolCall{ID: "1", Name: ShellStatus, Arguments: fmt.Sprintf(`{"id": %q, "end": %t}`, id, end)}
		foreign := scope // a text of strangers may have it looked at, not ended
		foreign.Label.Integrity = trust.Foreign
		if offered := mayLookAtCommands(w.Set, scope) == nil; offered {
			_, ask := w.NeedsApproval(foreign, call)
			expect.Equal(t, ask, end)
		}
		if !end {
			scope = foreign
		}
		got := w.call(t, scope, ShellStatus, call.Arguments)
		expect.False(t, !got.Failed && got.Integrity != trust.Foreign, "got %+v", got)
		return got
	}
	until := func(scope Scope, id, text string) {
		t.Helper()
		for range 1000 {
			if strings.Contains(look(scope, id, false).Content, text) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("got %+v, survivors %q", look(scope, id, false), survivors())
	}

	scope := direct()
	quick, long := start(scope, "echo one; echo two >&2; exit 3"), start(scope, "echo begun; setsid sleep 471504 & sleep 471504")
	until(scope, quick, "one\ntwo\n\n[exit status 3]")
	until(scope, long, "begun\n\n[running for ")
	flood := start(scope, "seq 100000; sleep 471504")
	until(scope, flood, "\n100000\n\n[running for ")
	expect.Has(t, look(scope, flood, false).Content, "characters left out]\n")

	other, friend := group(), direct()
	other.Label.Integrity = trust.Owner
	friend.User, friend.Label.Readers = "@bob:example.org", trust.PersonReaders("@bob:example.org")
	got := look(other, long, true)
	expect.False(t, !got.Failed || got.Content != "There is no such command here. Commands in the background: none", "another room: %+v", got)
	expect.Has(t, look(friend, long, true).Content, "there are no commands in this room")
	expect.Has(t, look(scope, "cmd_x", false).Content, "\n- "+quick+" (exit status 3): ", "\n- "+long+" (running for ")

	third := start(scope, "sleep 471504")
	expect.Has(t, approved(scope, "true").Content, "Not started: 3 commands run in the background already", long)
	start(other, "true") // another folder has its own limit
	expect.Has(t, look(scope, long, true).Content, "begun\n\n[it is being ended now]")
	expect.Has(t, look(scope, strings.ToUpper(third), true).Content, "[it is being ended now]")
	until(scope, long, "begun\n\n[ended before it was done]")
	until(scope, third, "[ended before it was done]")
	for range 5 { // the oldest are forgotten
		until(scope, start(scope, "true"), "[done]")
	}
	expect.Has(t, look(scope, quick, false).Content, "There is no such command here", "\n- "+flood+" (running for ")

	expect.False(t, len(survivors()) == 0, "nothing runs before the end")
	stop()
	expect.OK(t, <-stopped)
	if left := survivors(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	expect.Has(t, look(scope, flood, false).Content, "[ended before it was done]")
}
