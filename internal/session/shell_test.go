package session

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/sandbox"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

// withShell gives w the tool shell in the given rooms.
func (w *world) withShell(t *testing.T, rooms ...string) {
	t.Helper()
	if err := sandbox.Supported(); err != nil {
		t.Skip(err)
	}
	w.inGroup()
	w.cfg.Tools = tool.New(tool.Config{Files: workspace.Open(workspace.Config{Dir: w.dir, DB: w.cfg.DB}), Memory: w.cfg.Memory, Tasks: w.cfg.Tasks, Goals: w.Manager.goals, Skills: w.cfg.Skills, Dir: w.dir,
		Location: time.UTC, Commands: tool.Commands{Code: true, Rooms: rooms, Owners: w.cfg.Owners, Time: 10 * time.Second, Hidden: []string{w.dir}}})
	w.restart(t)
}

// TestShellIsApproved: the owner sees each command as it is and agrees to it alone; then it runs once, and
// its output is in the room and the history, and the model goes on with it.
func TestShellIsApproved(t *testing.T) {
	const first, second = "printf 'a  b\\n'\ncat ../../bot.db; echo x >> count; wc -l count", "cat count"
	call := func(command string) string { return `shell {"command":` + strconv.Quote(command) + `}` }
	w := newWorld(t, t.TempDir(), call(first), "I count.", call(second), "Once more.", "It is one line.", call(second), "Again.", "I could not read it.")
	w.withShell(t, "!group")
	in := func(id, sender, text string) chat.Message {
		return chat.Message{Head: chat.Head{ID: id, Room: "!group", Sender: sender, At: time.Now()}, Text: text}
	}
	w.deliver(t, in("$m", owner, "!mode developer"))
	w.deliver(t, in("$1", owner, "count"))
	a, poll := w.polled(t, "$1")
	expect.Has(t, poll.Text, "run this command on my machine", "\n│ printf 'a  b\\n'\n│ cat ../../bot.db; echo x >> count; wc -l count\n", "folder: work")
	expect.False(t, len(poll.Options) != 2 || strings.Contains(poll.Text, "conversation"), "the question is %+v", poll)
	count := filepath.Join(w.dir, "work", store.FileName(string(trust.RoomReaders("!group"))), "count")
	if _, err := os.Stat(count); err == nil {
		t.Fatal("it ran without an approval")
	}
	vote := chat.Vote{Change: chat.Change{Head: chat.Head{ID: "$v", Room: "!group", Sender: owner, At: time.Now()}, Target: a.QuestionID()}, Option: approval.Wide}
	w.deliver(t, vote)
	end := w.ends(t, a.Code)
	expect.False(t, end.State != approval.Done || end.Wide || end.Acts[0].Failed || end.Acts[0].ReadIntegrity != trust.Foreign, "it ended as %+v", end)
	expect.Has(t, end.Acts[0].Result, "a  b\n", "Permission denied", "1 count\n")
	w.deliver(t, vote) // repeated
	ran, known, err := w.cfg.History.Find(t.Context(), "!group", approval.OutcomePrefix+a.Code)
	expect.False(t, err != nil || !known, "no outcome in the history: %v", err)
	expect.Has(t, ran.Text, "```\na  b\n", "1 count\n```")
	expect.Equal(t, ran.Label.Integrity, trust.Foreign)

	b, _ := w.polled(t, approval.OutcomePrefix+a.Code+":next") // the vote for the conversation covers nothing
	w.deliver(t, in("$c", owner, "!approve "+b.Code+" conversation"))
	expect.Equal(t, w.ends(t, b.Code).Acts[0].Result, "x\n")
	expect.Equal(t, w.room.said(approval.OutcomePrefix+b.Code+":next").Text, "It is one line.")
	w.deliver(t, in("$3", owner, "again"))
	c, _ := w.polled(t, "$3")
	expect.OK(t, os.WriteFile(count, []byte("other"), 0o600)) // a file that it names
	w.deliver(t, in("$d", owner, "!approve "+c.Code))
	expect.False(t, !w.ends(t, c.Code).Acts[0].Failed, "it ran with another file")
}

// TestShellIsNotOffered: other rooms, modes and people have no commands.
func TestShellIsNotOffered(t *testing.T) {
	call := `shell {"command":"touch ran"}`
	w := newWorld(t, t.TempDir(), "1.", "2.", "3.", call, "No.")
	w.withShell(t, "!group")
	for i, c := range []struct{ room, sender, mode, offered string }{
		{"!group", owner, "assistant", "no"}, {"!group", owner, "debugger", "yes"}, {"!other", owner, "developer", "no"}, {"!group", friend, "developer", "yes"},
	} {
		w.deliver(t, chat.Message{Head: chat.Head{ID: "$m" + c.room + c.mode, Room: c.room, Sender: owner, At: time.Now()}, Text: "!mode " + c.mode})
		w.deliver(t, chat.Message{Head: chat.Head{ID: "$" + c.room + c.mode + c.sender, Room: c.room, Sender: c.sender, At: time.Now()}, Text: "do it"})
		asked := w.script.asked()
		offered := strings.Contains(asked[i], `"function":{"name":"shell"`)
		expect.False(t, offered != (c.offered == "yes"), "%+v: offered %t", c, offered)
		expect.Has(t, asked[i], `"function":{"name":"run_code"`)
	}
	none, err := w.approvalsThat(func(approval.Approval) bool { return true })
	expect.False(t, err != nil || len(none) > 0, "a friend's command was asked about: %v", none)
	s := newSession(w.Manager, "!group")
	names := s.offers["debugger"][5].Without(w.cfg.Tools.Withheld("!other", trust.RoomReaders("!other"))).Names
	expect.False(t, slices.Contains(names, tool.Shell) || len(names) == 0, "offered %v", names)
}

// TestGoesOnAfterRestart: a restart while the model goes on with an approved command neither runs the command
// again nor loses the answer.
func TestGoesOnAfterRestart(t *testing.T) {
	w := newWorld(t, t.TempDir(), `shell {"command":"echo x >> count; wc -l count"}`, "I count.", "not sent", "It is one line.")
	w.withShell(t, "!group")
	head := func(id string) chat.Head { return chat.Head{ID: id, Room: "!group", Sender: owner, At: time.Now()} }
	w.deliver(t, chat.Message{Head: head("$m"), Text: "!mode developer"})
	w.deliver(t, chat.Message{Head: head("$1"), Text: "count"})
	a, _ := w.polled(t, "$1")
	goesOn := make(chan struct{})
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, "Allowed, and done") {
			w.script.hold = nil
			close(goesOn)
			return make(chan struct{})
		}
		return nil
	}
	w.deliver(t, chat.Vote{Change: chat.Change{Head: head("$v"), Target: a.QuestionID()}, Option: approval.Once})
	<-goesOn
	w.restart(t)
	end := w.ends(t, a.Code)
	expect.Has(t, end.Acts[0].Result, "1 count")
	expect.Equal(t, end.State, approval.Done)
	expect.Equal(t, w.room.said(approval.OutcomePrefix+a.Code+":next").Text, "It is one line.")
	expect.Equal(t, strings.Count(w.lastAsked(), "Allowed, and done"), 1)
}

// TestCorrectedAndRunAgain: one approval allows a change of a file and the command that runs it, but not if
// somebody else changes the file meanwhile.
func TestCorrectedAndRunAgain(t *testing.T) {
	run := `shell {"command":"sh hello.sh"}`
	for _, other := range []bool{false, true} {
		w := newWorld(t, t.TempDir(), `write_file {"path":"work/hello.sh","content":"ehco hello\n"}`, run, "May I run it?",
			`edit_file {"path":"work/hello.sh","old":"ehco","new":"echo"}`, run, "May I correct it?", "It works.")
		w.withShell(t, "!group")
		head := func(id string) chat.Head { return chat.Head{ID: id, Room: "!group", Sender: owner, At: time.Now()} }
		vote := func(id string, a approval.Approval) approval.Approval {
			w.deliver(t, chat.Vote{Change: chat.Change{Head: head(id), Target: a.QuestionID()}, Option: approval.Once})
			return w.ends(t, a.Code)
		}
		w.deliver(t, chat.Message{Head: head("$m"), Text: "!mode developer"})
		w.deliver(t, chat.Message{Head: head("$1"), Text: "write hello"})
		a, _ := w.polled(t, "$1")
		expect.Has(t, vote("$v", a).Acts[0].Result, "not found", "[exit status 127]")
		b, poll := w.polled(t, approval.OutcomePrefix+a.Code+":next")
		expect.Has(t, poll.Text, "\npath: “work/hello.sh”\nold: “ehco”\nnew: “echo”\n", "│ sh hello.sh")
		if other {
			path := filepath.Join(w.dir, "work", store.FileName(string(trust.RoomReaders("!group"))), "hello.sh")
			expect.OK(t, os.WriteFile(path, []byte("ehco hello; echo evil"), 0o600))
		}
		end := vote("$w", b)
		expect.False(t, len(end.Acts) != 2 || end.Acts[0].Failed || end.Acts[1].Failed != other, "it ended as %+v", end.Acts)
		expect.Equal(t, end.Acts[1].Result == "hello\n", !other)
	}
}

// TestCommandNeverRunsTwice: a command during which the program was killed is not run again.
func TestCommandNeverRunsTwice(t *testing.T) {
	w := newWorld(t, t.TempDir(), `shell {"command":"echo x >> count; wc -l count"}`, "I count.", "I will look.")
	w.withShell(t, "!group")
	head := func(id string) chat.Head { return chat.Head{ID: id, Room: "!group", Sender: owner, At: time.Now()} }
	w.deliver(t, chat.Message{Head: head("$m"), Text: "!mode developer"})
	w.deliver(t, chat.Message{Head: head("$1"), Text: "count"})
	a, _ := w.polled(t, "$1")
	w.stop()
	a.State, a.Answer, a.Acts[0].Begun = approval.Approved, chat.Head{Sender: owner}, true // as it was when the program was killed
	expect.OK(t, w.approvals.Put(t.Context(), w.cfg.DB, a))
	w.restart(t)
	end := w.ends(t, a.Code)
	expect.Has(t, end.Acts[0].Result, "Interrupted")
	_, err := os.Stat(filepath.Join(w.dir, "work", store.FileName(string(trust.RoomReaders("!group"))), "count"))
	expect.False(t, !os.IsNotExist(err), "it ran: %v", err)
	expect.Equal(t, w.room.said(approval.OutcomePrefix+a.Code+":next").Text, "I will look.")
}

// TestScriptOfSkill: a skill's script runs as a copy in the work folder, after an owner has agreed to its content.
func TestScriptOfSkill(t *testing.T) {
	w := newWorld(t, t.TempDir(), `write_file {"path":"work/steep.sh","from":"data/skills/tea/scripts/steep.sh"}`,
		`shell {"command":"sh steep.sh"}`, "May I?", "Four minutes.")
	w.withShell(t, "!group")
	dir := filepath.Join(w.dir, "skills", "tea", "scripts")
	expect.OK(t, os.MkdirAll(dir, 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(dir, "..", "SKILL.md"), []byte("---\nname: tea\ndescription: How to make tea\n---\nRun scripts/steep.sh.\n"), 0o600))
	expect.OK(t, os.WriteFile(filepath.Join(dir, "steep.sh"), []byte("echo four minutes\n"), 0o600))
	head := func(id string) chat.Head { return chat.Head{ID: id, Room: "!group", Sender: owner, At: time.Now()} }
	w.deliver(t, chat.Message{Head: head("$m"), Text: "!mode developer"})
	w.deliver(t, chat.Message{Head: head("$1"), Text: "how long does tea steep?"})
	a, poll := w.polled(t, "$1")
	expect.Has(t, poll.Text, "file: steep.sh, SHA-256 ")
	w.deliver(t, chat.Vote{Change: chat.Change{Head: head("$v"), Target: a.QuestionID()}, Option: approval.Once})
	expect.Equal(t, w.ends(t, a.Code).Acts[0].Result, "four minutes\n")
}

// TestOutputEndsGrants: the output of an approved command is a text of strangers, which a later question names, and more of it
// ends what was allowed for the conversation.
func TestOutputEndsGrants(t *testing.T) {
	say, todo := `shell {"command":"echo order"}`, `task {"action":"add","content":"Tell Mallory"}`
	w := newWorld(t, t.TempDir(), say, "May I?", todo, "May I?", say, "May I?", todo, "May I?")
	w.withShell(t, "!group")
	head := func(id string) chat.Head { return chat.Head{ID: id, Room: "!group", Sender: owner, At: time.Now()} }
	vote := func(event, option string) approval.Approval {
		a, _ := w.polled(t, event)
		w.deliver(t, chat.Vote{Change: chat.Change{Head: head("$v" + a.Code), Target: a.QuestionID()}, Option: option})
		return w.ends(t, a.Code)
	}
	w.deliver(t, chat.Message{Head: head("$m"), Text: "!mode developer"})
	w.deliver(t, chat.Message{Head: head("$1"), Text: "read it"})
	next := approval.OutcomePrefix + vote("$1", approval.Once).Code + ":next"
	_, poll := w.polled(t, next)
	expect.Has(t, poll.Text, "results of tools")
	vote(next, approval.Wide)
	w.deliver(t, chat.Message{Head: head("$2"), Text: "once more"})
	next = approval.OutcomePrefix + vote("$2", approval.Once).Code + ":next"
	expect.Equal(t, w.approvalOf(t, next).State, approval.Open)
}
