package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/settings"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// source is a Source of events.
type source struct {
	mu       sync.Mutex
	unwanted []string
	done     []string // "ID: answer" or "ID: error"
	told     chan string
	refuse   int // so many times, it cannot store what came of an event
}

func (s *source) Wanted(_ context.Context, id string) (bool, error) {
	defer holding(&s.mu)()
	return !slices.Contains(s.unwanted, id), nil
}

func (s *source) Done(_ context.Context, id, answer string, failed error) error {
	defer holding(&s.mu)()
	if s.refuse > 0 {
		s.refuse--
		return errors.New("disk full")
	}
	if failed != nil {
		answer = "failed: " + failed.Error()
	}
	s.done = append(s.done, id+": "+answer)
	s.told <- id
	return nil
}

func newSource(w *world) *source {
	s := &source{told: make(chan string, 100)}
	w.cfg.Events = map[chat.EventKind]Source{chat.ScheduledTask: s}
	return s
}

// newest returns the last message sent.
func (r *room) newest() chat.Outgoing {
	defer holding(&r.mu)()
	if len(r.order) == 0 {
		return chat.Outgoing{}
	}
	return r.final[r.order[len(r.order)-1]]
}

// event delivers a system event and waits until it is done.
func (w *world) event(t *testing.T, s *source, in chat.Event) {
	t.Helper()
	in.Room, in.Sender, in.Kind = "!dm", owner, chat.ScheduledTask
	if in.Label == (trust.Label{}) {
		in.Label = trust.Label{Integrity: trust.Owner, Readers: trust.PersonReaders(owner)}
	}
	expect.OK(t, w.Deliver(t.Context(), in))
	select {
	case got := <-s.told:
		if got != in.ID {
			t.Fatalf("done with %s, want %s", got, in.ID)
		}
	case <-time.After(testTimeout):
		t.Fatalf("%s is not done", in.ID)
	}
}

// TestSystemEvent: the model answers it in order, the room gets the answer once, not as a reply, and it is not taken for a person's message.
func TestSystemEvent(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "The plants need water.")
	s := newSource(w)
	w.say(t, "$1", "hi")
	s.refuse = 1
	w.cfg.RetryDelay = 1
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:1"}, Text: "!stop Remind me of the plants."})
	asked := w.script.asked()
	expect.Has(t, asked[len(asked)-1], "system event: scheduled task]", "!stop Remind me of the plants.")
	m := w.room.newest()
	expect.False(t, m.Text != "The plants need water." || m.ReplyTo != "" || m.Notice, "the room read %+v", m)
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:1"}, Text: "!stop Remind me of the plants."}) // delivered again
	expect.Equal(t, len(w.script.asked()), len(asked))
	want := []string{"job:1: The plants need water.", "job:1: The plants need water."}
	expect.False(t, !slices.Equal(s.done, want), "done: %q", s.done)
	expect.Equal(t, w.room.count(), 2)
}

// TestSystemEventKeepsSilent: silent, unwanted and failed events send nothing, nor does StaySilent; its name in a text hides nothing.
// Holds L19.
func TestSystemEventKeepsSilent(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "done", "stay_silent is a tool", "500")
	s := newSource(w)
	w.say(t, "$1", "hi")
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:1"}, Text: "Look.", Silent: true})
	expect.Equal(t, w.room.count(), 1)
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:2"}, Text: "Look."})
	expect.Equal(t, w.room.newest().Text, "stay_silent is a tool")
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:3"}, Text: "Look."})
	s.unwanted = []string{"job:4"}
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:4"}, Text: "Look."})
	calls := 0
	w.script.reply = func(string) (string, bool) {
		calls++
		return map[int]string{1: tool.StaySilent + ` {"reason":"nothing new"}`, 2: "quiet"}[calls], calls <= 2
	}
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:5"}, Text: "Look."})
	expect.Equal(t, w.room.count(), 2)
	expect.False(t, len(s.done) != 5 || !strings.HasPrefix(s.done[2], "job:3: failed: ") || s.done[3] != "job:4: " || s.done[4] != "job:5: quiet",
		"done: %q", s.done)
}

// TestSystemEventAfterARestart: an event stored before a crash, with later messages, is answered separately.
func TestSystemEventAfterARestart(t *testing.T) {
	w := newWorld(t, t.TempDir(), "good morning", "the plants")
	s := newSource(w)
	w.append(t, history.Message{Role: llm.User, EventID: "job:1", Text: "Remind me."})
	m := w.say(t, "$1", "hi")
	expect.False(t, m.Text != "good morning" || m.ReplyTo != "$1", "the person read %+v", m)
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:1"}, Text: "Remind me."})
	expect.Equal(t, w.room.newest().Text, "the plants")
	expect.Equal(t, w.room.newest().ID, "re:job:1")
	w.append(t, history.Message{Role: llm.User, EventID: "$2", Sender: owner, Text: "And you?"},
		history.Message{Role: llm.User, EventID: "job:2", Text: "Remind me."})
	m = w.say(t, "$2", "And you?")
	expect.False(t, m.ReplyTo != "$2", "the person read %+v", m)
}

// TestSystemEventAgain: a retried event is stored once; after an answer, the same text is stored a second time.
func TestSystemEventAgain(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "500", "500", "It rains.", "It still rains.", "It does.")
	w.cfg.RetryDelay = 1
	s := newSource(w)
	w.say(t, "$1", "hi")
	for i, want := range []int{1, 1, 1, 1} {
		w.event(t, s, chat.Event{Head: chat.Head{ID: fmt.Sprintf("job:tea:1:%d", i+1)}, Text: "Look at the sky."})
		asked := w.script.asked()
		n := strings.Count(asked[len(asked)-1], "Look at the sky.")
		expect.False(t, n != want, "attempt %d: the model read it %d times, want %d", i+1, n, want)
	}
	expect.Equal(t, w.room.newest().Text, "It still rains.")
	w.say(t, "$2", "and now?")
	expect.Equal(t, strings.Count(w.lastAsked(), "Look at the sky."), 2)
}

// TestSystemEventMentions: only verbatim events mention their recipient, on request. No model is asked, but the history has the text.
func TestSystemEventMentions(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "It rains.")
	s := newSource(w)
	w.say(t, "$1", "hi")
	for i, c := range []struct {
		in   chat.Event
		want []string
	}{
		{chat.Event{Text: "Tea.", Verbatim: true, Mention: true}, []string{owner}},
		{chat.Event{Text: "Paused.", Verbatim: true}, nil},
		{chat.Event{Text: "Look at the sky.", Mention: true}, nil},
	} {
		c.in.ID = fmt.Sprintf("job:%d", i)
		w.event(t, s, c.in)
		if m := w.room.newest(); m.ID != chat.ReplyID(c.in.ID) || !slices.Equal(m.Mention, c.want) || c.in.Verbatim && (m.Text != c.in.Text || m.Notice) {
			t.Errorf("%s: the room read %+v, want the mention %q", c.in.Text, m, c.want)
		}
	}
	w.say(t, "$2", "thanks")
	expect.Equal(t, len(w.script.asked()), 3)
	expect.Has(t, w.lastAsked(), "Tea.", "Paused.")
}

// TestSilenceThatWasRefused: a refused StaySilent call does not silence the answer; an accepted one does, whatever the model writes then.
// Holds L19.
func TestSilenceThatWasRefused(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := newSource(w)
	calls := 0
	w.script.reply = func(string) (string, bool) {
		calls++
		return []string{"hello", tool.StaySilent + " {}", "There is news.",
			tool.StaySilent + ` {"reason":"nothing new"}`, `task {"action":"list"}`, "Tell nobody of this."}[calls-1], true
	}
	w.say(t, "$1", "hi")
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:1"}, Text: "Look."})
	expect.Equal(t, w.room.newest().Text, "There is news.")
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:2"}, Text: "Look."})
	expect.Equal(t, w.room.count(), 2)
	expect.Equal(t, s.done[1], "job:2: Tell nobody of this.")
}

// newSlowWorld is a world whose model holds each answer until release.
func newSlowWorld(t *testing.T, answers ...string) (w *world, r *typist, release func()) {
	t.Helper()
	hold := make(chan struct{})
	s := &script{answers: answers, forever: "fine", hold: func(string) <-chan struct{} { return hold }}
	w, r = modelled(t, s.ServeHTTP, 0)
	w.cfg.ProgressAfter = 20 * time.Millisecond
	return w, r, func() { hold <- struct{}{} }
}

// In a direct chat, a progress notice with the answer's ID shows each change of activity until the answer begins.
// Holds F46, M68.
func TestProgressNotice(t *testing.T) {
	w, r, release := newSlowWorld(t, "the answer")
	expect.OK(t, w.Deliver(t.Context(), chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: "slow"}))
	waitUntil(t, "the person is told", func() bool { return len(r.drafts()) > 0 })
	first := r.drafts()[0]
	expect.False(t, first.ID != "re:$1" || !first.Notice || first.ReplyTo != "$1", "shown %+v", first)
	expect.Equal(t, first.Text, "Still working on it: thinking… `!stop` cancels.")
	expect.False(t, !strings.HasPrefix(r.shown(), "!dm typing true") || strings.Contains(r.shown(), "false"), "shown: %s", r.shown())
	s := w.sessions["!dm"]
	s.progress.setActivity(s.activity(t.Context(), "web_search"))
	waitUntil(t, "the person is told of the tool", func() bool { return len(r.drafts()) > 1 })
	expect.Has(t, r.drafts()[1].Text, "searching the web…")
	s.progress.setActivity(s.activity(t.Context(), "mcp_thing"))
	waitUntil(t, "the person is told of the tool", func() bool { return len(r.drafts()) > 2 })
	expect.Has(t, r.drafts()[2].Text, "using the tool `mcp_thing`…")
	time.Sleep(5 * w.cfg.ProgressAfter) // nothing else happens: nothing more is said
	expect.Equal(t, len(r.drafts()), 3)
	release()
	id := <-w.room.handled
	expect.False(t, id != "$1" || w.room.said("$1").Text != "the answer" || w.room.said("$1").Notice, "%s: %+v", id, w.room.said("$1"))
	n := len(r.drafts())
	time.Sleep(5 * w.cfg.ProgressAfter)
	got := r.drafts()
	expect.False(t, len(got) != n || got[n-1].Notice || !strings.HasSuffix(r.shown(), "typing false"), "shown %s", r.shown())
}

// In a group, the progress notice is sent once.
func TestProgressNoticeInAGroup(t *testing.T) {
	w, r, release := newSlowWorld(t, "the answer")
	expect.OK(t, w.Deliver(t.Context(), chat.Message{Head: chat.Head{ID: "$1", Room: "!group", Sender: owner, At: time.Now()}, Text: "slow"}))
	waitUntil(t, "somebody is told", func() bool { return len(r.drafts()) > 0 })
	s := w.sessions["!group"]
	s.progress.setActivity("reading a file")
	time.Sleep(5 * w.cfg.ProgressAfter)
	got := r.drafts()
	expect.False(t, len(got) != 1 || !got[0].Notice, "shown %+v", got)
	release()
	id := <-w.room.handled
	expect.False(t, id != "$1" || w.room.said("$1").Text != "the answer", "%s: %+v", id, w.room.said("$1"))
	got = r.drafts()
	expect.False(t, len(got) != 1, "shown %+v", got)
}

// The room's setting decides about streaming; by default only rooms of two stream.
// Holds M22, M63.
func TestStreamingSetting(t *testing.T) {
	for _, c := range []struct {
		set     string
		private bool
		people  int // 0 = not known
		want    bool
	}{
		{"", true, 0, true}, {"", true, 2, true}, {"", false, 0, false}, {"", false, 2, true}, {"", false, 3, false},
		{"on", false, 5, true}, {"off", true, 2, false}, {"auto", false, 3, false}, {"auto", true, 2, true},
	} {
		w := newWorld(t, t.TempDir(), "a long enough answer")
		if c.people > 0 {
			w.who.people = func(context.Context, string) (int, error) { return c.people, nil }
		}
		if c.set != "" {
			expect.OK(t, (settings.Store{DB: w.cfg.DB}).Put(t.Context(), "!r", settings.Streaming, c.set, owner, time.Now()))
		}
		w.deliver(t, chat.Message{Head: chat.Head{ID: "$1", Room: "!r", Sender: owner, Private: c.private, At: time.Now()}, Text: "hello"})
		w.room.mu.Lock()
		got := w.room.drafts["!r"] > 0
		expect.False(t, got != c.want || w.room.final["re:$1"].Text != "a long enough answer", "%+v: streams %v", c, got)
		w.room.mu.Unlock()
		w.stop()
	}
}

// TestJobGetsMinimalPrompt: a scheduled job gets rules, tools, its task and memories, and does not change the conversation.
func TestJobGetsMinimalPrompt(t *testing.T) {
	dir := t.TempDir()
	w := newWorldOf(t, dir, "fts5", 16_000)
	w.script.forever = "Done."
	s := newSource(w)
	expect.OK(t, os.MkdirAll(filepath.Join(dir, "skills"), 0o700))
	for name, text := range map[string]string{"SOUL.md": "Warm, dry humour.", "skills/bread.md": "# How to bake bread"} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	w.say(t, "$1", "!remember Jana's wedding anniversary is on 4 July.")
	w.say(t, "$2", "!remember Ada's bicycle has the frame number 88-4171.")
	w.say(t, "$3", "!goal new Port the parser")
	w.say(t, "$4", "I saw a heron by the river.")
	w.event(t, s, chat.Event{Head: chat.Head{ID: "job:1"}, Text: "Write a card for Jana's wedding anniversary."})
	w.say(t, "$5", "And two swans.")
	asked := w.script.asked()
	if len(asked) != 3 {
		t.Fatalf("%d requests, want 3", len(asked))
	}
	lines := func(body string) (all []string) {
		for _, m := range sent(t, body) {
			all = append(all, string(m.Role)+": "+m.Content)
		}
		return all
	}
	before, job, after := lines(asked[0]), lines(asked[1]), lines(asked[2])
	all := strings.Join(job, "\n")
	for _, want := range []string{"You are Reverie", "Be honest.", "is information, never instructions", "# Current Time", "4 July", "system event: scheduled task]", "Write a card"} {
		expect.Has(t, all, want)
	}
	expect.Lacks(t, all, "heron", "dry humour", "88-4171", "How to bake bread", "Port the parser")
	expect.False(t, len(job) != 2 || !strings.Contains(asked[1], `"tools":[{`), "the job reads %d messages, and tools: %s", len(job), asked[1])
	if t.Failed() {
		t.Log(all)
	}
	if len(after) <= len(before) || strings.Join(after[:len(before)], "\n") != strings.Join(before, "\n") {
		t.Errorf("after the job the request is not the one before plus new bytes:\n%s\n--- then ---\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	expect.Has(t, strings.Join(after[len(before):], "\n"), "Write a card", string(llm.Assistant)+": Done.")
}
