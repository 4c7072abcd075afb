package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// TestBranch: where a message is answered follows from the room's setting alone.
// Holds M24.
func TestBranch(t *testing.T) {
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
		if got := Branch(c.setting, Inbound{ID: "$in", Thread: c.thread, Text: c.text}); got != c.want {
			t.Errorf("%s: %q in thread %q is answered in %q, want %q", c.setting, c.text, c.thread, got, c.want)
		}
	}
}

// in is a message of the owner in a thread of room, which may be none.
func in(id, room, thread, text string) Inbound {
	return Inbound{ID: id, Room: room, Sender: owner, Text: text, Thread: thread, Branch: thread, At: time.Now()}
}

// asks delivers a message and returns the last request that it caused.
func (w *world) asks(t *testing.T, m Inbound) string {
	t.Helper()
	got := w.deliver(t, m)
	if got.Thread != m.Branch {
		t.Errorf("%s is answered in thread %q, want %q", m.ID, got.Thread, m.Branch)
	}
	return w.lastAsked()
}

// holds checks which of some words a request has.
func holds(t *testing.T, what, request string, has []string, not ...string) {
	t.Helper()
	wants(t, what+": "+request, has...)
	lacks(t, what+": "+request, not...)
}

// TestThreadsKeepApart: a thread begins with what had been said in the room, and from
// then on nothing that is said in one conversation is read in another. What belongs to the
// room is the same everywhere, and none of it belongs to a thread.
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
			result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: room, Label: callerIn(room).Label(), User: owner, Content: "buy turpentine"}))(t)
			if got := w.deliver(t, in("$7", room, "$other", "!mode developer")); !strings.Contains(got.Text, "developer") || got.Thread != "$other" {
				t.Errorf("!mode: %+v", got)
			}
			for i, thread := range []string{"", "$1", "$other"} {
				holds(t, "everywhere", w.asks(t, in(fmt.Sprint("$8", i), room, thread, "what now?")), []string{"ladder", "turpentine"})
			}
			wants(t, w.deliver(t, in("$9", room, "", "!mode")).Text, "developer")
			holds(t, "another room", w.asks(t, in("$10", "!elsewhere:example.org", "$1", "and here?")), nil, "azure", "bristle", "ladder", "turpentine")

			wants(t, w.deliver(t, in("$s", room, "$1", "!summary")).Text, "azure")
			lacks(t, w.deliver(t, in("$s2", room, "", "!summary")).Text, "azure")
			holds(t, "!retry in the room", w.asks(t, in("$r", room, "", "!retry")), []string{"azure"}, "bristle")

			w.stop()
			w = newWorld(t, dir)
			holds(t, "the thread after a restart", w.asks(t, in("$11", room, "$1", "still there?")), []string{"azure", "bristle", "ladder"}, "celery", "damson")
			holds(t, "the room after a restart", w.asks(t, in("$12", room, "", "and here?")), []string{"azure", "damson"}, "bristle", "celery")
			for _, column := range []string{"scope FROM memory", "scope FROM memory_turn", "room FROM task", "room FROM session", "room FROM goal", "room FROM room_setting",
				"room FROM sub_session"} {
				name, _, _ := strings.Cut(column, " ")
				if kept := value[int](t, w, `SELECT count(*) FROM (SELECT `+column+`) WHERE instr(`+name+`, 'thread:') > 0`); kept > 0 {
					t.Errorf("%s: %d rows belong to a thread", column, kept)
				}
			}
		})
	}
}

// TestThreadOfALongRoom: what a thread begins with is bounded, and the newest of it stays.
// Holds M26.
func TestThreadOfALongRoom(t *testing.T) {
	w := newWorld(t, t.TempDir())
	for i := range 60 {
		w.append(t, history.Message{Room: "!g", Role: llm.User, EventID: fmt.Sprint("$m", i), Sender: owner,
			Text: fmt.Sprintf("word%d ", i) + strings.Repeat("and so on ", 60), Label: programs(trust.Room("!g"))})
	}
	m := in("$1", "!g", "$root", "and?")
	m.Quotes = []Quote{{Sender: "@guest:b", Text: "begin " + strings.Repeat("a long root ", 5000), At: time.Now().Add(time.Minute), Why: QuoteThread}}
	holds(t, "the thread", w.asks(t, m), []string{"word59 ", "begin a long root"}, "word0 ")
	c, err := w.cfg.History.Compacted(t.Context(), history.TalkOf("!g", "$root"))
	if n := llm.EstimateTokens(c.Text()); err != nil || n > 1700 || n < 500 {
		t.Errorf("the thread begins with %d tokens, %v", n, err)
	}
}

// TestStopInThreads: !stop ends what is answered where it is said. In the room, where nothing
// is answered, it ends what is answered for that person in threads.
// Holds M9.
func TestStopInThreads(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.hold = func(body string) <-chan struct{} { return make(chan struct{}) }
	begin := func(all ...Inbound) {
		t.Helper()
		for _, m := range all {
			before := len(w.script.asked())
			must(t, w.Deliver(t.Context(), m))
			for len(w.script.asked()) == before {
				time.Sleep(time.Millisecond)
			}
		}
	}
	stopped := func(stop Inbound, want ...string) {
		t.Helper()
		must(t, w.Deliver(t.Context(), stop))
		got := map[string]bool{}
		for range len(want) + 1 {
			got[<-w.room.handled] = true
		}
		for _, id := range append(want, stop.ID) {
			if !got[id] {
				t.Errorf("%s ends %v, and not %s", stop.Text, got, id)
			}
		}
		if said := w.room.said(stop.ID); len(want) > 0 && !strings.HasPrefix(said.Text, "Stopped") || said.Thread != stop.Branch {
			t.Errorf("%s says %+v", stop.ID, said)
		}
	}
	theirs := in("$3", "!g", "$b", "theirs")
	theirs.Sender = "@friend:example.org"
	begin(in("$1", "!g", "", "one"), in("$2", "!g", "$a", "two"), theirs)
	stopped(in("$4", "!g", "$a", "!stop"), "$2")
	stopped(in("$5", "!g", "", "!stop"), "$1")
	stopped(in("$6", "!g", "$a", "!stop"))
	begin(in("$7", "!g", "$7", "in a thread of its own"))
	stopped(in("$8", "!g", "", "!stop"), "$7")
	if said := w.room.said("$7"); said.Text != i18n.Source()["stop.ended"] || said.Thread != "$7" {
		t.Errorf("%+v", said)
	}
	equal(t, w.room.said("$3").Text, "")
}

// TestThreadRests: the session of a quiet thread ends, and the next message goes on with what
// was said; one that comes just then is not lost.
func TestThreadRests(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.asks(t, in("$1", "!g", "$a", "which brush? bristle"))
	w.asks(t, in("$2", "!g", "", "we paint damson"))
	w.mu.Lock()
	s, main := w.rooms[history.TalkOf("!g", "$a")], w.rooms["!g"]
	w.mu.Unlock()
	if main.rest() {
		t.Error("the room's own session ended")
	}
	s.mu.Lock()
	s.lane = []Inbound{in("$3", "!g", "$a", "wait")}
	s.mu.Unlock()
	if s.rest() {
		t.Error("a session ended with a message in its lane")
	}
	s.mu.Lock()
	s.lane = nil
	s.mu.Unlock()
	if !s.rest() {
		t.Fatal("a quiet thread keeps its session")
	}
	w.mu.Lock()
	n := len(w.rooms)
	w.mu.Unlock()
	if n != 1 {
		t.Errorf("%d sessions are left", n)
	}
	holds(t, "the thread", w.asks(t, in("$4", "!g", "$a", "go on")), []string{"bristle"}, "damson")
}

// TestRedactedBesideAThread: what is taken back leaves the threads that began with it too.
// Holds M4.
func TestRedactedBesideAThread(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.asks(t, in("$1", "!g", "", "the password of the gate is Orinoco"))
	m := in("$2", "!g", "$root", "is that so?")
	m.Quotes = []Quote{{ID: "$root", Sender: "@guest:b", Text: "I have lost my Toyota keys", At: time.Now().Add(time.Minute), Why: QuoteThread}}
	holds(t, "the thread", w.asks(t, m), []string{"Orinoco", "Toyota"})
	for _, event := range []string{"$1", "$root"} {
		for range 2 {
			must(t, w.cfg.History.Redact(t.Context(), event))
		}
	}
	holds(t, "the thread afterwards", w.asks(t, in("$3", "!g", "$root", "and now?")), []string{"is that so?"}, "Orinoco", "Toyota")
	holds(t, "a thread that begins afterwards", w.asks(t, in("$4", "!g", "$another", "and here?")), nil, "Orinoco", "Toyota")
}

// TestGoalHeardInTwoPlaces: what the model says of the room's goal counts once, wherever it
// says it, also when an older answer is taken in after a newer one of another conversation.
func TestGoalHeardInTwoPlaces(t *testing.T) {
	w := newWorld(t, t.TempDir())
	result(w.cfg.Tasks.Goals().Create(t.Context(), inGroup("!g"), "Paint the fence", ""))(t)
	var said [2]history.Message
	for i, talk := range []history.Talk{"!g", history.TalkOf("!g", "$a")} {
		said[i] = history.Message{Room: talk, Role: llm.Assistant, Text: fmt.Sprintf("[CHECKPOINT] Step%d - COMPLETED", i), At: time.Now(),
			Label: trust.Label{Integrity: trust.User, Readers: trust.Room("!g")}}
		must(t, w.cfg.History.Append(t.Context(), &said[i]))
	}
	for range 2 { // the thread's first: its number is higher
		for _, i := range []int{1, 0} {
			must(t, newSession(w.Manager, said[i].Room).takeIn(t.Context(), inGroup("!g"), said[i]))
		}
	}
	g, ok, err := w.cfg.Tasks.Goals().Shown(t.Context(), inGroup("!g").Place, time.Time{})
	if err != nil || !ok || len(g.Checkpoints) != 2 {
		t.Errorf("%+v, %v, %v", g, ok, err)
	}
}

// TestEditedCommandIsNotQuotedToOthers: a command of a direct chat that became a message when
// others had come is quoted to them as little as before, should the transport know no newer words.
func TestEditedCommandIsNotQuotedToOthers(t *testing.T) {
	w := newWorld(t, t.TempDir(), "Fine.", "Because.")
	before := time.Now().Add(-time.Minute)
	w.deliver(t, Inbound{ID: "$1", Room: "!dm", Sender: owner, Text: "!remember CANARY-41", Private: true, At: before})
	w.deliver(t, Inbound{ID: "$2", Room: "!dm", Sender: owner, Text: "we meet at nine", At: time.Now(), Change: Edited, Target: "$1"})
	request := w.asks(t, Inbound{ID: "$3", Room: "!dm", Sender: owner, Text: "why?", At: time.Now(), Thread: "$1", Branch: "$1",
		Quotes: []Quote{{ID: "$1", Sender: owner, Text: "!remember CANARY-41", At: before, Why: QuoteThread}}})
	if !strings.Contains(request, "we meet at nine") || strings.Contains(request, "CANARY-41") {
		t.Errorf("the request is %s", request)
	}
}
