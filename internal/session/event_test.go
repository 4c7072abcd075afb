package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// source keeps events like whoever sends them does.
type source struct {
	mu       sync.Mutex
	unwanted []string
	done     []string // "ID: answer" or "ID: error"
	told     chan string
	refuse   int // so many times, it cannot store what came of an event
}

func (s *source) Wanted(_ context.Context, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Contains(s.unwanted, id), nil
}

func (s *source) Done(_ context.Context, id, answer string, failed error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	w.cfg.Events = map[EventKind]Source{ScheduledTask: s}
	return s
}

// newest is the message that was said last.
func (r *room) newest() Outgoing {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		return Outgoing{}
	}
	return r.final[r.order[len(r.order)-1]]
}

// event delivers a system event and waits until it is done.
func (w *world) event(t *testing.T, s *source, in Inbound) {
	t.Helper()
	in.Room, in.Sender, in.Event = "!dm", owner, ScheduledTask
	if in.Label == (trust.Label{}) {
		in.Label = trust.Label{Integrity: trust.Owner, Readers: trust.Person(owner)}
	}
	must(t, w.Deliver(t.Context(), in))
	select {
	case got := <-s.told:
		if got != in.ID {
			t.Fatalf("done with %s, want %s", got, in.ID)
		}
	case <-time.After(patience):
		t.Fatalf("%s is not done", in.ID)
	}
}

// TestSystemEvent: the model answers it in its turn, the room reads that once, as
// no reply, and it is not taken for anything a person said.
func TestSystemEvent(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "The plants need water.")
	s := newSource(w)
	w.say(t, "$1", "hi")
	s.refuse = 1
	w.cfg.Again = 1
	w.event(t, s, Inbound{ID: "job:1", Text: "!stop Remind me of the plants."})
	asked := w.script.asked()
	wants(t, asked[len(asked)-1], "system event: scheduled task]", "!stop Remind me of the plants.")
	if m := w.room.newest(); m.Text != "The plants need water." || m.ReplyTo != "" || m.Notice {
		t.Errorf("the room read %+v", m)
	}
	w.event(t, s, Inbound{ID: "job:1", Text: "!stop Remind me of the plants."}) // delivered again
	equal(t, len(w.script.asked()), len(asked))
	if want := []string{"job:1: The plants need water.", "job:1: The plants need water."}; !slices.Equal(s.done, want) {
		t.Errorf("done: %q", s.done)
	}
	equal(t, w.room.count(), 2)
}

// TestSystemEventKeepsSilent: nothing is said of an event that is silent, unwanted or
// failed, or where the model says so by its tool; the word in a text hides nothing.
// Holds L19.
func TestSystemEventKeepsSilent(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "done", "stay_silent is a tool", "500")
	s := newSource(w)
	w.say(t, "$1", "hi")
	w.event(t, s, Inbound{ID: "job:1", Text: "Look.", Silent: true})
	equal(t, w.room.count(), 1)
	w.event(t, s, Inbound{ID: "job:2", Text: "Look."})
	equal(t, w.room.newest().Text, "stay_silent is a tool")
	w.event(t, s, Inbound{ID: "job:3", Text: "Look."})
	s.unwanted = []string{"job:4"}
	w.event(t, s, Inbound{ID: "job:4", Text: "Look."})
	calls := 0
	w.script.reply = func(string) (string, bool) {
		calls++
		return map[int]string{1: tool.StaySilent + ` {"reason":"nothing new"}`, 2: "quiet"}[calls], calls <= 2
	}
	w.event(t, s, Inbound{ID: "job:5", Text: "Look."})
	equal(t, w.room.count(), 2)
	if len(s.done) != 5 || !strings.HasPrefix(s.done[2], "job:3: failed: ") || s.done[3] != "job:4: " || s.done[4] != "job:5: quiet" {
		t.Errorf("done: %q", s.done)
	}
}

// TestSystemEventAfterARestart: one that was told before the program died, with
// something said since, is worked on still, and its answer is its own.
func TestSystemEventAfterARestart(t *testing.T) {
	w := newWorld(t, t.TempDir(), "good morning", "the plants")
	s := newSource(w)
	w.append(t, history.Message{Role: llm.User, EventID: "job:1", Text: "Remind me."})
	if m := w.say(t, "$1", "hi"); m.Text != "good morning" || m.ReplyTo != "$1" {
		t.Errorf("the person read %+v", m)
	}
	w.event(t, s, Inbound{ID: "job:1", Text: "Remind me."})
	if m := w.room.newest(); m.Text != "the plants" || m.ID != "re:job:1" {
		t.Errorf("the room read %+v", m)
	}
	w.append(t, history.Message{Role: llm.User, EventID: "$2", Sender: owner, Text: "And you?"},
		history.Message{Role: llm.User, EventID: "job:2", Text: "Remind me."})
	if m := w.say(t, "$2", "And you?"); m.ReplyTo != "$2" {
		t.Errorf("the person read %+v", m)
	}
}

// TestSystemEventAgain: another attempt at what no model answered is told once, however
// often it takes; answered, the same text is told anew, and stands in the conversation twice.
func TestSystemEventAgain(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "500", "500", "It rains.", "It still rains.", "It does.")
	w.cfg.Again = 1
	s := newSource(w)
	w.say(t, "$1", "hi")
	for i, want := range []int{1, 1, 1, 1} {
		w.event(t, s, Inbound{ID: fmt.Sprintf("job:tea:1:%d", i+1), Text: "Look at the sky."})
		asked := w.script.asked()
		if n := strings.Count(asked[len(asked)-1], "Look at the sky."); n != want {
			t.Errorf("attempt %d: the model read it %d times, want %d", i+1, n, want)
		}
	}
	equal(t, w.room.newest().Text, "It still rains.")
	w.say(t, "$2", "and now?")
	if asked := w.script.asked(); strings.Count(asked[len(asked)-1], "Look at the sky.") != 2 {
		t.Errorf("the conversation holds it otherwise than twice: %s", asked[len(asked)-1])
	}
}

// TestSystemEventMentions: only what is said as it is mentions whom it is for, and
// only when that is asked for. No model is asked then, and it knows of it afterwards.
func TestSystemEventMentions(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "It rains.")
	s := newSource(w)
	w.say(t, "$1", "hi")
	for i, c := range []struct {
		in   Inbound
		want []string
	}{
		{Inbound{Text: "Tea.", Verbatim: true, Mention: true}, []string{owner}},
		{Inbound{Text: "Paused.", Verbatim: true}, nil},
		{Inbound{Text: "Look at the sky.", Mention: true}, nil},
	} {
		c.in.ID = fmt.Sprintf("job:%d", i)
		w.event(t, s, c.in)
		if m := w.room.newest(); m.ID != replyID(c.in.ID) || !slices.Equal(m.Mention, c.want) || c.in.Verbatim && (m.Text != c.in.Text || m.Notice) {
			t.Errorf("%s: the room read %+v, want the mention %q", c.in.Text, m, c.want)
		}
	}
	w.say(t, "$2", "thanks")
	if asked := w.script.asked(); len(asked) != 3 || !strings.Contains(asked[2], "Tea.") || !strings.Contains(asked[2], "Paused.") {
		t.Errorf("%d requests; the model does not know what was said: %s", len(asked), asked[len(asked)-1])
	}
}

// TestSilenceThatWasRefused: a flag that the tool did not take keeps nothing silent; one
// that it took does, whatever is written besides it and by a model that goes on.
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
	w.event(t, s, Inbound{ID: "job:1", Text: "Look."})
	equal(t, w.room.newest().Text, "There is news.")
	w.event(t, s, Inbound{ID: "job:2", Text: "Look."})
	if n := w.room.count(); n != 2 || s.done[1] != "job:2: Tell nobody of this." {
		t.Errorf("the room has %d messages, the last %+v; done: %q", n, w.room.newest(), s.done)
	}
}
