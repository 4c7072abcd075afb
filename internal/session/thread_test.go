package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/settings"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestAnswerThread: the room's setting decides the thread of an answer.
// Holds M24.
func TestAnswerThread(t *testing.T) {
	for _, c := range []struct{ setting, thread, text, want string }{
		{"auto", "", "hello", ""},
		{"auto", "$root", "hello", "$root"},
		{"always", "", "hello", "$in"},
		{"always", "$root", "hello", "$root"},
		{"always", "", "!status", ""}, // of the room's own conversation
		{"always", "", "!retry", "$in"},
		{"always", "$root", "!status", "$root"},
		{"off", "", "hello", ""},
		{"off", "$root", "hello", ""},
	} {
		got := command.AnswerThread(c.setting, chat.Message{Head: chat.Head{ID: "$in"}, Thread: c.thread, Text: c.text})
		expect.False(t, got != c.want, "%s: %q in thread %q is answered in %q, want %q", c.setting, c.text, c.thread, got, c.want)
	}
}

// in is a message of the owner in a thread of room, which may be none.
func in(id, room, thread, text string) chat.Message {
	return chat.Message{Head: chat.Head{ID: id, Room: room, Sender: owner, Branch: thread, At: time.Now()}, Text: text, Thread: thread}
}

// asks delivers a message and returns the last request that it caused.
func (w *world) asks(t *testing.T, m chat.Message) string {
	t.Helper()
	got := w.deliver(t, m)
	expect.False(t, got.Thread != m.Branch, "%s is answered in thread %q, want %q", m.ID, got.Thread, m.Branch)
	return w.lastAsked()
}

// holds checks which of some words a request has.
func holds(t *testing.T, what, request string, has []string, not ...string) {
	t.Helper()
	expect.Has(t, what+": "+request, has...)
	expect.Lacks(t, what+": "+request, not...)
}

// TestThreadsKeepApart: a thread starts with the room's messages; then both are separate, except for what belongs to the room.
// Holds M26.
func TestThreadsKeepApart(t *testing.T) {
	for _, room := range []string{"!group:example.org", "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM"} { // with a server's name, and without
		t.Run(room, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, dir)
			holds(t, "the room", w.asks(t, in("$1", room, "", "we paint the fence azure")), []string{"azure"})
			holds(t, "a thread", w.asks(t, in("$2", room, "$1", "which brush? bristle")), []string{"azure", "bristle"})
			holds(t, "another thread", w.asks(t, in("$3", room, "$other", "dinner? celery")), []string{"azure", "celery"}, "bristle")
			holds(t, "the room", w.asks(t, in("$4", room, "", "the gate stays damson")), []string{"azure", "damson"}, "bristle", "celery")
			holds(t, "the thread", w.asks(t, in("$5", room, "$1", "and how many?")), []string{"azure", "bristle"}, "celery", "damson")
			w.script.answers = []string{`{"entry":"owns a ladder"}`, "noted"}
			w.deliver(t, in("$6", room, "$1", "remember that I own a ladder"))
			expect.Must(w.cfg.Tasks.Add(t.Context(), task.Task{Room: room, Label: callerIn(room).Label(), User: owner, Content: "buy turpentine"}))(t)
			got := w.deliver(t, in("$7", room, "$other", "!mode developer"))
			expect.False(t, !strings.Contains(got.Text, "developer") || got.Thread != "$other", "!mode: %+v", got)
			for i, thread := range []string{"", "$1", "$other"} {
				holds(t, "everywhere", w.asks(t, in(fmt.Sprint("$8", i), room, thread, "what now?")), []string{"ladder", "turpentine"})
			}
			expect.Has(t, w.deliver(t, in("$9", room, "", "!mode")).Text, "developer")
			holds(t, "another room", w.asks(t, in("$10", "!elsewhere:example.org", "$1", "and here?")), nil, "azure", "bristle", "ladder", "turpentine")

			expect.Has(t, w.deliver(t, in("$s", room, "$1", "!summary")).Text, "azure")
			expect.Lacks(t, w.deliver(t, in("$s2", room, "", "!summary")).Text, "azure")
			holds(t, "!retry in the room", w.asks(t, in("$r", room, "", "!retry")), []string{"azure"}, "bristle")

			w.stop()
			w = newWorld(t, dir)
			holds(t, "the thread after a restart", w.asks(t, in("$11", room, "$1", "still there?")), []string{"azure", "bristle", "ladder"}, "celery", "damson")
			holds(t, "the room after a restart", w.asks(t, in("$12", room, "", "and here?")), []string{"azure", "damson"}, "bristle", "celery")
			for _, column := range []string{"scope FROM memory", "scope FROM past_message", "room FROM task", "room FROM session", "room FROM goal", "room FROM room_setting",
				"room FROM sub_session", "room FROM objective"} {
				name, _, _ := strings.Cut(column, " ")
				kept := value[int](t, w, `SELECT count(*) FROM (SELECT `+column+`) WHERE instr(`+name+`, 'thread:') > 0`)
				expect.False(t, kept > 0, "%s: %d rows belong to a thread", column, kept)
			}
		})
	}
}

// TestThreadOfALongRoom: a thread's first summary is bounded and keeps the newest messages.
// Holds M26.
func TestThreadOfALongRoom(t *testing.T) {
	w := newWorld(t, t.TempDir())
	for i := range 60 {
		w.append(t, history.Message{Room: "!g", Role: llm.User, EventID: fmt.Sprint("$m", i), Sender: owner,
			Text: fmt.Sprintf("word%d ", i) + strings.Repeat("and so on ", 60), Label: programLabel(trust.RoomReaders("!g"))})
	}
	m := in("$1", "!g", "$root", "and?")
	m.Quotes = []chat.Quote{{Sender: "@guest:b", Text: "begin " + strings.Repeat("a long root ", 5000), At: time.Now().Add(time.Minute), Why: chat.QuoteThread}}
	holds(t, "the thread", w.asks(t, m), []string{"word59 ", "begin a long root"}, "word0 ")
	c, err := w.cfg.History.LatestCompaction(t.Context(), history.NewTimeline("!g", "$root"))
	n := llm.EstimateTokens(c.Text())
	expect.False(t, err != nil || n > 1700 || n < 500, "the thread begins with %d tokens, %v", n, err)
}

// TestStopInThreads: !stop cancels the work of its conversation; in an idle room, the person's work in threads.
// Holds M9.
func TestStopInThreads(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.hold = func(body string) <-chan struct{} { return make(chan struct{}) }
	begin := func(all ...chat.Message) {
		t.Helper()
		for _, m := range all {
			before := len(w.script.asked())
			expect.OK(t, w.Deliver(t.Context(), m))
			for len(w.script.asked()) == before {
				time.Sleep(time.Millisecond)
			}
		}
	}
	stopped := func(stop chat.Message, want ...string) {
		t.Helper()
		expect.OK(t, w.Deliver(t.Context(), stop))
		got := map[string]bool{}
		for range len(want) + 1 {
			got[<-w.room.handled] = true
		}
		for _, id := range append(want, stop.ID) {
			expect.False(t, !got[id], "%s ends %v, and not %s", stop.Text, got, id)
		}
		said := w.room.said(stop.ID)
		expect.False(t, len(want) > 0 && !strings.HasPrefix(said.Text, "Stopped") || said.Thread != stop.Branch, "%s says %+v", stop.ID, said)
	}
	theirs := in("$3", "!g", "$b", "theirs")
	theirs.Sender = "@friend:example.org"
	begin(in("$1", "!g", "", "one"), in("$2", "!g", "$a", "two"), theirs)
	stopped(in("$4", "!g", "$a", "!stop"), "$2")
	stopped(in("$5", "!g", "", "!stop"), "$1")
	stopped(in("$6", "!g", "$a", "!stop"))
	begin(in("$7", "!g", "$7", "in a thread of its own"))
	stopped(in("$8", "!g", "", "!stop"), "$7")
	said := w.room.said("$7")
	expect.False(t, said.Text != i18n.Source()["stop.ended"] || said.Thread != "$7", "%+v", said)
	expect.Equal(t, w.room.said("$3").Text, "")
}

// TestIdleThreadEnds: an idle thread's session ends, the next message continues it, and a concurrent message is not lost.
func TestIdleThreadEnds(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.asks(t, in("$1", "!g", "$a", "which brush? bristle"))
	w.asks(t, in("$2", "!g", "", "we paint damson"))
	w.mu.Lock()
	s, main := w.sessions[history.NewTimeline("!g", "$a")], w.sessions["!g"]
	w.mu.Unlock()
	expect.False(t, main.stopIdleThread(), "the room's own session ended")
	busy := newSession(w.Manager, s.talk)
	busy.mail.Put(in("$3", "!g", "$a", "wait"))
	expect.False(t, busy.stopIdleThread(), "a session ended with a message in its mailbox")
	if !s.stopIdleThread() {
		t.Fatal("a quiet thread keeps its session")
	}
	w.mu.Lock()
	n := len(w.sessions)
	w.mu.Unlock()
	expect.Equal(t, n, 1)
	holds(t, "the thread", w.asks(t, in("$4", "!g", "$a", "go on")), []string{"bristle"}, "damson")
}

// TestRedactedBesideAThread: a redaction also removes the text from threads that started with it.
// Holds M4.
func TestRedactedBesideAThread(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.asks(t, in("$1", "!g", "", "the password of the gate is Orinoco"))
	m := in("$2", "!g", "$root", "is that so?")
	m.Quotes = []chat.Quote{{ID: "$root", Sender: "@guest:b", Text: "I have lost my Toyota keys", At: time.Now().Add(time.Minute), Why: chat.QuoteThread}}
	holds(t, "the thread", w.asks(t, m), []string{"Orinoco", "Toyota"})
	for _, event := range []string{"$1", "$root"} {
		for range 2 {
			expect.OK(t, w.cfg.History.Redact(t.Context(), event))
		}
	}
	holds(t, "the thread afterwards", w.asks(t, in("$3", "!g", "$root", "and now?")), []string{"is that so?"}, "Orinoco", "Toyota")
	holds(t, "a thread that begins afterwards", w.asks(t, in("$4", "!g", "$another", "and here?")), nil, "Orinoco", "Toyota")
}

// TestGoalMarkersInRoomAndThread: goal markers count once, in the room or a thread, in any order.
func TestGoalMarkersInRoomAndThread(t *testing.T) {
	w := newWorld(t, t.TempDir())
	expect.Must(w.Manager.goals.Create(t.Context(), inGroup("!g"), "Paint the fence", ""))(t)
	var said [2]history.Message
	for i, talk := range []history.Timeline{"!g", history.NewTimeline("!g", "$a")} {
		said[i] = history.Message{Room: talk, Role: llm.Assistant, Text: fmt.Sprintf("[CHECKPOINT] Step%d - COMPLETED", i), At: time.Now(),
			Label: trust.Label{Integrity: trust.User, Readers: trust.RoomReaders("!g")}}
		expect.OK(t, w.cfg.History.Append(t.Context(), &said[i]))
	}
	for range 2 { // the thread's first: its number is higher
		for _, i := range []int{1, 0} {
			expect.OK(t, newSession(w.Manager, said[i].Room).applyMarkers(t.Context(), inGroup("!g"), said[i]))
		}
	}
	g, ok, err := w.Manager.goals.ForPrompt(t.Context(), inGroup("!g").Place, time.Time{})
	expect.False(t, err != nil || !ok || len(g.Checkpoints) != 2, "%+v, %v, %v", g, ok, err)
}

// TestEditedCommandIsNotQuotedToOthers: a command of a former direct chat, edited later, is not quoted to new readers.
func TestEditedCommandIsNotQuotedToOthers(t *testing.T) {
	w := newWorld(t, t.TempDir(), "Fine.", "Because.")
	before := time.Now().Add(-time.Minute)
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true, At: before}, Text: "!remember CANARY-41"})
	w.deliver(t, chat.Edit{Change: chat.Change{Head: chat.Head{ID: "$2", Room: "!dm", Sender: owner, At: time.Now()}, Target: "$1"}, Text: "we meet at nine"})
	request := w.asks(t, chat.Message{Head: chat.Head{ID: "$3", Room: "!dm", Sender: owner, At: time.Now(), Branch: "$1"}, Text: "why?", Thread: "$1", Quotes: []chat.Quote{{ID: "$1", Sender: owner, Text: "!remember CANARY-41", At: before, Why: chat.QuoteThread}}})
	expect.Has(t, request, "we meet at nine")
	expect.Lacks(t, request, "CANARY-41")
}

// TestMove moves a room to its upgrade with everything that belongs to it.
// Holds F31, M54.
func TestMove(t *testing.T) {
	w := newWorld(t, t.TempDir(), "Yes.\n"+reported)
	say := func(room, text string) string {
		t.Helper()
		return w.deliver(t, chat.Message{Head: chat.Head{Room: room, Sender: owner, At: time.Now()}, Text: text}).Text
	}
	ask := func(room, text string) string {
		t.Helper()
		say(room, text)
		return w.lastAsked()
	}
	ask("!old", "the password of the gate is Orinoco")
	w.asks(t, in("$thread", "!old", "$root", "which brush? bristle"))
	w.known(t, memory.Room("!old"), "Jana likes herons")
	w.addTask(t, task.Task{Room: "!old", User: owner, Content: "water the cactus"})
	group := w.directScope("!old", "@bob:x")
	group.Private = false
	w.calls(t, group, "add_skill", "skill_name", "minutes", "summary", "Who writes them", "documentation", "Bob.")
	say("!old", "!mode developer")
	say("!old", "!think low")
	say("!old", "!config threads off")
	expect.OK(t, settings.Store{DB: w.cfg.DB}.Put(t.Context(), "!new", settings.Threads, "always", owner, time.Now()))
	for range 2 { // it can be repeated
		expect.OK(t, w.RoomReplaced(t.Context(), "!old", "!new"))
	}
	prompt := ask("!new", "what do you know?")
	for _, want := range []string{"Orinoco", "herons", "cactus", "CURRENT GOAL: Implement user authentication system"} {
		n := strings.Count(prompt, want)
		expect.False(t, n != 1, "the new room's prompt has %d times %q", n, want)
		expect.False(t, strings.Contains(ask("!other", "and you?"), want), "another room's prompt has %q", want)
	}
	if prompt = ask("!old", "is anybody here?"); strings.Contains(prompt, "Orinoco") || strings.Contains(prompt, "cactus") || w.goals(t, "!old") != "" {
		t.Error("the old room goes on as if nothing had happened")
	}
	for command, want := range map[string]string{"!mode": "Mode: developer, since", "!think": "set to low", "!config threads": "Value: `always`", "!skills": "`minutes`"} {
		expect.Has(t, say("!new", command), want)
	}
	expect.Lacks(t, say("!old", "!skills"), "minutes")
	holds(t, "the thread", w.asks(t, in("$on", "!new", "$root", "go on")), []string{"Orinoco", "bristle"})
	holds(t, "the old room's thread", w.asks(t, in("$back", "!old", "$root", "go on")), nil, "Orinoco", "bristle")
}

// The bot is removed from a room, or a message is redacted, during the answer: no further request, reply or error.
// Holds F29.
func TestRedactedWhileAnswering(t *testing.T) {
	w := newWorld(t, t.TempDir(), `{"content":"something"}`, "never asked for")
	w.script.block = make(chan struct{})
	expect.OK(t, w.Deliver(t.Context(), chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: "remember it"}))
	waitUntil(t, "the model is asked", func() bool { return len(w.script.asked()) > 0 })
	w.room.mu.Lock()
	w.room.gone = map[string]bool{"$1": true}
	w.room.mu.Unlock()
	close(w.script.block)
	expect.Equal(t, <-w.room.handled, "$1")
	expect.Equal(t, len(w.script.asked()), 1)
	expect.Equal(t, w.room.count(), 0)
	w.room.mu.Lock()
	w.room.gone = nil
	w.room.mu.Unlock()
	expect.Equal(t, w.say(t, "$2", "next").Text, "never asked for")
}

// TestBackgroundGivesWay: background work starts when all rooms are idle, and is cancelled by a message in any room.
func TestBackgroundGivesWay(t *testing.T) {
	w := newWorld(t, t.TempDir())
	work, done, err := w.cfg.Background.WaitQuiet(t.Context(), time.Millisecond)
	if err != nil || work.Err() != nil {
		t.Fatalf("nobody waits, and it does not begin: %v", err)
	}
	w.script.mu.Lock()
	w.script.block = make(chan struct{})
	w.script.mu.Unlock()
	expect.OK(t, w.Deliver(t.Context(), chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: "hello"}))
	expect.False(t, work.Err() == nil, "somebody wrote, and it goes on")
	done()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = w.cfg.Background.WaitQuiet(ctx, time.Millisecond)
	expect.False(t, err == nil, "a question waits for its answer, and it begins")
	close(w.script.block)
	<-w.room.handled
	_, done, err = w.cfg.Background.WaitQuiet(t.Context(), time.Millisecond)
	expect.OK(t, err)
	done()
	w.event(t, newSource(w), chat.Event{Head: chat.Head{ID: "job:1"}, Text: "Look."})
	ctx, cancel = context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	_, _, err = w.cfg.Background.WaitQuiet(ctx, time.Millisecond)
	expect.OK(t, err)
}

// TestBeforeEvict: the hook runs before messages leave the prompt, at !new and at a compaction, and does not delay the answer.
func TestBeforeEvict(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "", 4096)
	var mu sync.Mutex
	var told []string
	w.cfg.BeforeEvict = func(room string) {
		defer holding(&mu)()
		past, err := w.cfg.History.Load(context.Background(), history.Timeline(room))
		told = append(told, fmt.Sprintf("%s %v %v", room, len(past) > 0, err))
	}
	w.script.forever = "We spoke of a long list of things, and of the garden that Anna keeps."
	for i := range 10 {
		w.say(t, fmt.Sprintf("$%d", i), "A message of some length, with words in it. And a few more of them.")
	}
	w.say(t, "$compact", "!compact")
	w.say(t, "$again", "And one more.")
	w.say(t, "$new", "!new")
	defer holding(&mu)()
	want := []string{"!dm true <nil>", "!dm true <nil>"}
	expect.False(t, !slices.Equal(told, want), "told %q, want %q", told, want)
}

// edits is a world without an edit debounce.
func edits(t *testing.T, dir string, answers ...string) *world {
	t.Helper()
	w := newWorld(t, dir, answers...)
	w.cfg.EditDebounce = time.Millisecond
	return w
}

// What people do to earlier messages.
const (
	editing   = "edit"
	redacting = "redact"
	voting    = "vote"
	stopping  = string(chat.StopAnswer)
	retrying  = string(chat.RetryAnswer)
)

// changeOf makes a change to target; text is that of an edit or a vote.
func changeOf(what string, head chat.Head, target, text string) chat.Inbound {
	switch what {
	case editing:
		return chat.Edit{Change: chat.Change{Head: head, Target: target}, Text: text}
	case redacting:
		return chat.Redaction{Change: chat.Change{Head: head, Target: target}}
	case voting:
		return chat.Vote{Change: chat.Change{Head: head, Target: target}, Option: text}
	}
	return chat.Reaction{Change: chat.Change{Head: head, Target: target}, Action: chat.Action(what)}
}

func (w *world) change(t *testing.T, what, id, target, text string, asked time.Time) {
	t.Helper()
	w.deliver(t, changeOf(what, chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: asked}, target, text))
}

// words returns the conversation of !dm in one line.
func (w *world) words(t *testing.T) string {
	t.Helper()
	past := w.past(t)
	var all []string
	for _, m := range past {
		all = append(all, string(m.Role)+" "+m.Text)
	}
	return strings.Join(all, " | ")
}

// After a crash between storing an answer and sending it, its markers are applied once and it is sent.
// Holds F34.
func TestEditAfterRestart(t *testing.T) {
	for point, prepare := range map[string]func(t *testing.T, w *world){
		"nothing is done": func(*testing.T, *world) {},
		"reopened and reworded": func(t *testing.T, w *world) {
			expect.Must(w.cfg.History.RewindTo(t.Context(), "!dm", "$2", "re:$2"))(t)
			if _, _, err := w.cfg.History.EditMessage(t.Context(), "$2", "SECOND", "", harvest.MarkUnread); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			w := edits(t, dir, "one", "two")
			w.say(t, "$1", "first")
			w.say(t, "$2", "second")
			w.stop()
			prepare(t, w)
			_ = w.cfg.DB.Close()
			w = edits(t, dir, "three", "four")
			for range 2 { // and once more, when it is done but nobody knows
				w.change(t, editing, "$e", "$2", "SECOND", time.Now())
			}
			expect.Equal(t, w.words(t), "user first | assistant one | user SECOND | assistant three")
			n := len(w.script.asked())
			expect.False(t, n != 1 || w.room.said("$2").Text != "three", "%d requests, said %+v", n, w.room.said("$2"))
		})
	}
}

func (w *world) sessionOf(room string) *Session {
	defer holding(&w.Manager.mu)()
	return w.sessions[history.Timeline(room)]
}

// A redaction removes the answers to a message, those of !retry too; answers to others stay.
func TestAnswersRemoved(t *testing.T) {
	w := edits(t, t.TempDir(), "one", "two", "three")
	w.say(t, "$1", "first")
	w.say(t, "$2", "!retry")
	w.say(t, "$3", "second")
	w.change(t, redacting, "$r", "$1", "", time.Now())
	expect.Equal(t, fmt.Sprint(w.room.removed), "[re:$1 re:$2]")
	expect.Equal(t, w.words(t), "user [taken back] | assistant [taken back] | user second | assistant three")
	w.change(t, redacting, "$r2", "re:$3", "", time.Now())
	expect.Equal(t, w.words(t), "user [taken back] | assistant [taken back] | user second | assistant [taken back]")
	expect.Equal(t, len(w.room.removed), 2)
}

// A retry of an answer that is too far back is refused with a notice.
func TestRetryReaction(t *testing.T) {
	w := edits(t, t.TempDir(), "one", "two")
	w.say(t, "$1", "first")
	w.say(t, "$2", "!new")
	w.change(t, retrying, "$again", "$1", "", time.Now())
	got := w.room.said("$again")
	expect.False(t, !got.Notice || !strings.Contains(got.Text, "the answer to your last question") || got.ReplyTo != "$1", "said %+v", got)
	w.change(t, retrying, "$other", "re:$2", "", time.Now()) // a command
	w.change(t, editing, "$e", "$unknown", "!whoami", time.Now().Add(-time.Hour))
	expect.False(t, w.room.said("$other").Text+w.room.said("$unknown").Text != "" || len(w.script.asked()) != 1,
		"a command is asked again, or an old one that was edited is run")
}

// An edit of one message of an answered burst changes the answer.
// Holds M2.
func TestEditedInABurst(t *testing.T) {
	w := edits(t, t.TempDir())
	w.script.block = make(chan struct{})
	head := func(id string) chat.Head {
		return chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: time.Now()}
	}
	for i, in := range []chat.Inbound{chat.Message{Head: head("$0"), Text: "zero"}, chat.Message{Head: head("$1"), Text: "one"},
		chat.Message{Head: head("$2"), Text: "two"}, chat.Edit{Change: chat.Change{Head: head("$e"), Target: "$1"}, Text: "ONE"}} {
		expect.OK(t, w.Deliver(t.Context(), in))
		for i == 0 && len(w.script.asked()) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(w.script.block)
	got := map[string]bool{}
	for range 4 {
		got[<-w.room.handled] = true
	}
	expect.False(t, len(got) != 4 || len(w.script.asked()) != 2, "handled %v with %d requests", got, len(w.script.asked()))
	w.change(t, editing, "$e2", "$1", "EINS", time.Now())
	expect.Equal(t, w.words(t), "user zero | assistant fine | user EINS | user two | assistant fine")
	expect.Equal(t, len(w.script.asked()), 3)
	last := w.script.asked()[2]
	expect.False(t, !strings.Contains(last, "EINS") || strings.Contains(last, "ONE") || w.room.said("$1").Text != "", "asked %s", last)
}

// The note has no comma, because a header with one belongs to a shared room.
func TestUsedToolsNote(t *testing.T) {
	expect.Equal(t, usedToolsNote(nil), "")
	got := usedToolsNote([]string{"task", "append_memory"})
	expect.False(t, !strings.Contains(got, "task; append_memory.") || strings.Contains(got, ","), "%q", got)
}

// TestEditedBesideAVoiceMessage: an edit of a voice message's caption changes the answer and keeps the transcript.
// Holds M3.
func TestEditedBesideAVoiceMessage(t *testing.T) {
	w, files := newFiles(t, 16_000, false, true, "one", "two", "three")
	w.cfg.EditDebounce = time.Millisecond
	w.bring(t, "$1", "for the zebra", files, chat.VoiceFile, "voice.ogg", []byte("OggS\x00\x02 and so on"))
	for range 2 {
		w.change(t, editing, "$edit", "$1", "for the lion", time.Now())
	}
	expect.Equal(t, w.words(t), "user for the lion\n[voice message, transcribed] buy milk, please | assistant two")
	if asked := w.script.asked(); len(asked) != 2 || !strings.Contains(asked[1], "for the lion\\n[voice message, transcribed] buy milk, please") || strings.Contains(asked[1], "zebra") {
		t.Errorf("asked %d times, and in the end %s", len(asked), asked[len(asked)-1])
	}
}

// TestPreviewOfAThread: the request shown for a thread of a group has nothing private in it.
func TestPreviewOfAThread(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.known(t, memory.Private(owner), "the safe opens with 4711")
	for room, private := range map[string]bool{"!dm": true, "!group": false} {
		expect.OK(t, w.remember(t.Context(), chat.Head{Room: room, Sender: owner, Private: private}))
		p, _, err := w.Preview(t.Context(), string(history.NewTimeline(room, "$root")))
		expect.OK(t, err)
		expect.Equal(t, strings.Contains(p.Prefix, "4711"), private, room)
	}
}
