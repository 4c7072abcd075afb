package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/sandbox"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// withCommands gives w the tools run_code and shell, in group() and in the direct chats of the owner.
func withCommands(t testing.TB, rooms ...string) *workshop {
	w := newWorkshop(t)
	cfg := w.cfg
	cfg.Commands = Commands{Code: true, Rooms: rooms, Owners: []string{owner}, Time: 10 * time.Second, Hidden: []string{w.dir}}
	w.Set = New(cfg)
	return w
}

func commandCall(command string) llm.ToolCall {
	return llm.ToolCall{ID: "1", Name: Shell, Arguments: string(quoted(map[string]string{"command": command}))}
}

func needsGuard(t testing.TB) {
	t.Helper()
	if err := sandbox.Supported(); err != nil {
		t.Skip(err)
	}
}

// TestShellIsWithheld: without a configuration there is no such tool, and nobody is asked where it may not run.
func TestShellIsWithheld(t *testing.T) {
	expect.False(t, slices.Contains(newWorkshop(t).Names(), Shell) || slices.Contains(newWorkshop(t).Names(), RunCode), "offered without a configuration")
	room, person := group().Place(), direct().Place()
	for _, c := range []struct {
		rooms          []string
		inRoom, direct bool
	}{
		{[]string{"!other:example.org"}, false, false}, {[]string{room.Room}, true, false}, {[]string{"*"}, false, true}, {[]string{person.Room}, false, true},
	} {
		w := withCommands(t, c.rooms...)
		expect.Equal(t, len(w.Withheld(room.Room, room.Readers())) == 0, c.inRoom)
		expect.Equal(t, len(w.Withheld(person.Room, person.Readers())) == 0, c.direct)
		for scope, want := range map[*Scope]bool{new(group()): c.inRoom, new(direct()): c.direct} {
			scope.Label.Integrity = trust.Owner
			if _, ask := w.NeedsApproval(*scope, commandCall("touch x")); ask != want {
				t.Errorf("rooms %v: %s asks %t", c.rooms, scope.Room, ask)
			}
		}
	}
	w := withCommands(t, "*", room.Room)
	friend := direct()
	friend.User, friend.Label.Readers = "@bob:example.org", trust.PersonReaders("@bob:example.org")
	guest, job, sub, planning := group(), group(), group(), group()
	guest.User, job.System, sub.SubSession = "@bob:example.org", true, "sub_ab12cd34"
	planning.Policy = Policy{Deny: []string{"shell"}}
	for _, scope := range []Scope{friend, guest, job, sub, planning} {
		for _, of := range []trust.Integrity{trust.Foreign, trust.Owner} {
			scope.Label.Integrity = of
			_, ask := w.NeedsApproval(scope, commandCall("touch x"))
			expect.False(t, ask, "asked about %+v", scope)
			act := act(w.Set, scope, commandCall("touch x"))
			scope.Granted = act.Grants()
			expect.Has(t, w.bad(t, scope, Shell, commandCall("touch x").Arguments), "")
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "work")); err == nil {
		t.Error("something was run")
	}
}

// TestShellAsksEachTime: each command needs an approval of exactly it, by an owner.
func TestShellAsksEachTime(t *testing.T) {
	needsGuard(t)
	w := withCommands(t, "*")
	dir := filepath.Join(w.dir, "work", store.FileName(string(direct().Place().Readers())))
	expect.OK(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	write := func(name, text string) { expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("sub/run.sh", "echo one")
	write("other.txt", "x")
	scope := direct()
	call := commandCall("cd sub && sh ./run.sh;  echo 'a  b'")
	first, ask := w.NeedsApproval(scope, call)
	if !ask || first.Covers != "" || !strings.HasPrefix(strings.Join(first.Shown, "\n"), "command:\n│ cd sub && sh ./run.sh;  echo 'a  b'\nfolder: work\nfile: sub/run.sh, SHA-256 ") || len(first.Shown) != 4 {
		t.Fatalf("asks %t: %q", ask, first.Shown)
	}
	refused := func(scope Scope, call llm.ToolCall) {
		t.Helper()
		expect.Equal(t, w.bad(t, scope, call.Name, call.Arguments), string(notTheSame))
	}
	refused(scope, call)
	var stored Act // as the approval stores it
	expect.OK(t, json.Unmarshal(quoted(first), &stored))
	scope.Granted = stored.Grants()
	got := w.call(t, scope, Shell, call.Arguments)
	if got.Failed || got.Content != "one\na  b\n" || got.Integrity != trust.Foreign {
		t.Fatalf("got %+v", got)
	}
	refused(scope, commandCall("cd sub && sh ./run.sh; echo 'a b'"))
	refused(scope, commandCall("true"))
	scope.Granted = map[string]bool{"": true, "shell room": true, first.Covers: true, "shell": true}
	refused(scope, call)
	scope.Granted = stored.Grants()
	scope.Label.Integrity = trust.User // somebody else agreed
	refused(scope, call)
	scope.Label.Integrity = trust.Owner
	write("sub/run.sh", "echo two")
	refused(scope, call)
	write("sub/run.sh", "echo one")
	write("run.sh", "echo three") // another file that may be meant
	refused(scope, call)
	expect.OK(t, os.Remove(filepath.Join(dir, "run.sh")))
	scope.Policy = Policy{Deny: []string{"delete_file"}} // the mode has changed
	refused(scope, call)
	again, ask := w.NeedsApproval(scope, call)
	expect.False(t, !ask || !slices.Contains(again.Shown, "folder: work, read-only"), "asks %t: %q", ask, again.Shown)
	scope.Granted = again.Grants()
	expect.Equal(t, w.ok(t, scope, Shell, call.Arguments), "one\na  b\n")
	touch, _ := w.NeedsApproval(scope, commandCall("touch new; cat ../../bot.db"))
	scope.Granted = touch.Grants()
	expect.Has(t, w.ok(t, scope, Shell, touch.Call.Arguments), "Permission denied")
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("written in a read-only folder")
	}
}

// TestShellQuota: programs fill a work folder as far as tools that write files do.
func TestShellQuota(t *testing.T) {
	needsGuard(t)
	w := withCommands(t, "*")
	w.Set.cfg.Commands.Quota = 1 << 20
	scope := direct()
	scope.Label.Integrity = trust.Owner
	call := commandCall("for i in 1 2 3 4; do head -c 500000 /dev/zero > f$i; done; sleep 9; echo all")
	act, _ := w.NeedsApproval(scope, call)
	scope.Granted = act.Grants()
	expect.Equal(t, w.ok(t, scope, Shell, call.Arguments), "Done; there is nothing to show.\n[stopped: the work folder is full]")
}

// TestNamedFiles: the files of a command are found wherever they are, by patterns, too.
func TestNamedFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.sh", "b.sh", "c.txt", "d/a.sh", "d/e.py"} {
		expect.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	expect.OK(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link.sh")))
	for command, want := range map[string]string{
		"ls": "", "sh a.sh": "a.sh d/a.sh", "sh ./d/a.sh": "a.sh d/a.sh", "X=1 sh <b.sh": "b.sh", "for f in *.sh; do sh $f; done": "a.sh b.sh d/a.sh",
		"python3 \"d/e.py\"": "d/e.py", "cat [c]*": "c.txt", "sh link.sh": "", "make A=c.txt": "c.txt",
	} {
		var got []string
		for _, line := range namedFiles(dir, command) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "file: "), ",")
			got = append(got, name)
		}
		expect.Equal(t, strings.Join(got, " "), want)
	}
}

// TestRunCode: code computes and does nothing else; the result is trusted like the call.
func TestRunCode(t *testing.T) {
	needsGuard(t)
	w := withCommands(t)
	scope := group()
	scope.Label = trust.Label{}
	run := func(code string) Result {
		return w.call(t, scope, RunCode, string(quoted(map[string]string{"code": code})))
	}
	got := run("console.log('n'); 6 * 7")
	expect.False(t, got.Failed || got.Content != "n\n42\n" || got.Integrity != trust.Owner, "got %+v", got)
	expect.Has(t, run("let x = 1").Content, "nothing was printed")
	for code, want := range map[string]string{
		"a.b": "ReferenceError: a is not defined at code.js:1:1", "let s = 'xxxxxxxx'; for (;;) s += s": "memory", "foo(": "code.js: Line 1:5",
	} {
		got := run(code)
		expect.False(t, !got.Failed, "%s: %+v", code, got)
		expect.Has(t, got.Content, want)
	}
	got = run("'x'.repeat(99999)")
	expect.False(t, got.Failed || len([]rune(got.Content)) > MaxResult, "%d characters", len(got.Content))
}
