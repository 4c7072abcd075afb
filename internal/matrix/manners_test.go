package matrix_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// ahead is a clock that a test moves.
type ahead struct{ by atomic.Int64 }

func (a *ahead) now() time.Time          { return time.Now().Add(time.Duration(a.by.Load())) }
func (a *ahead) advance(d time.Duration) { a.by.Add(int64(d)) }

func (a *ahead) clocked(cfg *matrix.Config) { cfg.Hurry(); cfg.Clock(a.now) }

func (b *bot) says(room string, m session.Outgoing) {
	b.t.Helper()
	ok(b.t, b.Say(b.t.Context(), room, m))
}

// The notice that an answer takes long becomes the answer: the same event, as text.
// Holds M68.
func TestProgressBecomesTheAnswer(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	clock := &ahead{}
	b := startWith(t, server, t.TempDir(), nil, clock.clocked, you.UserID())
	room := chat(t, s, you, b, false)
	id := say(t, you, room, "hello")
	b.next()
	still := session.Outgoing{ID: "re-" + id, Text: "still working: thinking", ReplyTo: id, Draft: true, Notice: true}
	b.says(room, still)
	clock.advance(2 * time.Second)
	b.Look()
	first := peertest.Next(t, you, messageIn(room))
	if !first.Notice || !first.Live || first.Body != still.Text {
		t.Errorf("got %+v", first)
	}
	still.Text = "still working: a tool" // shorter or longer, it is told
	clock.advance(10 * time.Second)
	b.says(room, still)
	next := func() peer.Event {
		return peertest.Next(t, you, func(e peer.Event) bool {
			return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit)
		})
	}
	if e := next(); e.Kind != peer.Edit || e.ID != first.ID || e.Body != still.Text || !e.Notice {
		t.Errorf("got %+v", e)
	}
	clock.advance(10 * time.Second)
	b.says(room, session.Outgoing{ID: "re-" + id, Text: "The answer begins.", ReplyTo: id, Draft: true})
	if e := next(); e.Kind != peer.Edit || e.ID != first.ID || e.Body != "The answer begins." || e.Notice || !e.Live {
		t.Errorf("got %+v", e)
	}
	b.says(room, session.Outgoing{ID: "re-" + id, Text: "The answer.", ReplyTo: id})
	if e := next(); e.Kind != peer.Edit || e.ID != first.ID || e.Body != "The answer." || e.Notice || e.Live {
		t.Errorf("got %+v", e)
	}
	if n := s.Count("redact"); n != 0 {
		t.Errorf("%d redactions", n)
	}
}

// Nobody is told of an edit: an answer that took longer than a minute is a new message,
// and the notice is taken back. So it is too when the bot was stopped in between, when the
// answer is shown while it is written, and when the notice is just on its way.
// Holds F46, M68.
func TestLateAnswerIsANewMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                    string
		restart, draft, onItWay bool
	}{{name: "at once"}, {name: "after a restart", restart: true}, {name: "streamed", draft: true}, {name: "the notice is on its way", onItWay: true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, server := pretend(t)
			you := person(t, s, "you")
			clock := &ahead{}
			b := startWith(t, server, t.TempDir(), nil, clock.clocked, you.UserID())
			room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
			joined(t, you, room, b.UserID())
			id := sayTo(t, you, room, "hello", b.UserID())
			b.next()
			hold := make(chan struct{})
			var slow *matrixtest.Hook
			if c.onItWay {
				slow = s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), matrixtest.Behind(matrixtest.Hold(hold)))
			}
			b.says(room, session.Outgoing{ID: "re-" + id, Text: "still working: thinking", ReplyTo: id, Draft: true, Notice: true})
			clock.advance(2 * time.Second)
			b.Look()
			first := peertest.Next(t, you, messageIn(room))
			if c.restart {
				b = b.again(nil)
				b.next()
			}
			clock.advance(time.Minute)
			if c.draft {
				b.says(room, session.Outgoing{ID: "re-" + id, Text: "The answer begins.", ReplyTo: id, Draft: true})
				clock.advance(2 * time.Second)
				b.Look()
				if e := peertest.Next(t, you, messageIn(room)); e.ID == first.ID || e.Body != "The answer begins." || !e.Live || e.Notice {
					t.Errorf("got %+v", e)
				}
			}
			b.says(room, session.Outgoing{ID: "re-" + id, Text: "The answer.", ReplyTo: id})
			if slow != nil {
				close(hold)
			}
			await(t, s, "the notice is not taken back", func() bool {
				list := eventsIn(s, room, b.UserID(), "m.room.message")
				return len(list) > 1 && list[0].ID == first.ID && list[0].Content.Body == ""
			})
			await(t, s, "the answer is not sent", func() bool { st := b.Status(t.Context()); return st.Outbox == 0 })
			list := eventsIn(s, room, b.UserID(), "m.room.message")
			want := 2
			if c.draft {
				want = 3
			}
			if len(list) != want || list[1].Content.MsgType != "m.text" || fmt.Sprint(list[1].Content.users()) != "["+you.UserID()+"]" {
				t.Errorf("shown %+v", list)
			}
			if last := list[len(list)-1].Content; last.Body != "The answer." && last.New.Body != "The answer." {
				t.Errorf("it reads %+v", last)
			}
			// It is ours: who replies to it talks to us, and an edit finds it.
			if _, err := you.Reply(t.Context(), room, list[1].ID, "thanks"); err != nil {
				t.Fatal(err)
			}
			b.hears("thanks")
		})
	}
}

// A notice that nobody's answer takes the place of does not stay there when the bot
// comes back.
func TestProgressAfterARestart(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	clock := &ahead{}
	b := startWith(t, server, t.TempDir(), nil, clock.clocked, you.UserID())
	room := chat(t, s, you, b, false)
	id := say(t, you, room, "hello")
	b.next()
	b.says(room, session.Outgoing{ID: "re-" + id, Text: "still working: thinking", ReplyTo: id, Draft: true, Notice: true})
	clock.advance(2 * time.Second)
	b.Look()
	first := peertest.Next(t, you, messageIn(room))
	ok(t, b.Handled(t.Context(), id))
	b = b.again(echo)
	await(t, s, "the notice is not taken back", func() bool {
		list := eventsIn(s, room, b.UserID(), "m.room.message")
		return len(list) == 1 && list[0].ID == first.ID && list[0].Content.Body == ""
	})
	b.becomes("something is still to be sent", func(s matrix.Status) bool { return s.Outbox == 0 })
}

// An answer is edited at most forty times, each time a while after the last, slower where
// it is encrypted; nobody is mentioned by an edit, and the last one says all.
// Holds F5, M19, M20, M23.
func TestStreamingManners(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	clock := &ahead{}
	b := startWith(t, server, t.TempDir(), nil, clock.clocked, you.UserID())
	room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	id := sayTo(t, you, room, "hello", b.UserID())
	b.next()
	text := strings.Repeat("word ", 12)
	draft := func() {
		text += strings.Repeat("more ", 12)
		b.says(room, session.Outgoing{ID: "re-" + id, Text: text, ReplyTo: id, Draft: true})
	}
	for i := 1; i <= 45; i++ {
		draft()
		for tries := 0; len(eventsIn(s, room, b.UserID(), "m.room.message")) < min(i, 40); tries++ {
			if tries > 5000 {
				t.Fatalf("edit %d is missing", i)
			}
			clock.advance(time.Second)
			b.Look()
			time.Sleep(2 * time.Millisecond)
		}
	}
	other := chat(t, s, you, b, false)
	for i := range 4 { // nothing more is shown, however long it waits: what is said elsewhere comes after it
		clock.advance(time.Minute)
		b.says(other, session.Outgoing{ID: fmt.Sprint("elsewhere ", i), Text: "and this"})
		await(t, s, "nothing is said elsewhere", func() bool { return len(eventsIn(s, other, b.UserID(), "m.room.message")) == i+1 })
	}
	text += "the end"
	b.says(room, session.Outgoing{ID: "re-" + id, Text: text, ReplyTo: id})
	await(t, s, "the answer is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
	list := eventsIn(s, room, b.UserID(), "m.room.message")
	if len(list) != 41 {
		t.Fatalf("%d events for an answer", len(list))
	}
	for i, e := range list {
		c := e.Content
		switch {
		case i == 0:
			if c.Live == nil || fmt.Sprint(c.users()) != "["+you.UserID()+"]" {
				t.Errorf("it begins as %+v", c)
			}
		case c.Relates.Type != "m.replace" || c.Relates.Event != list[0].ID || len(c.users()) > 0:
			t.Errorf("edit %d: %+v", i, c)
		case (c.Live == nil) != (i == 40):
			t.Errorf("edit %d: live %v", i, c.Live)
		}
	}
	if last := list[40].Content.New; last.Body != text || last.MsgType != "m.text" {
		t.Errorf("it ends as %+v", last)
	}
}

// Holds F5, M18.
func TestPaceOfEdits(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	clock, began := &ahead{}, time.Now()
	stopped := func() time.Time { return began.Add(time.Duration(clock.by.Load())) } // or the test's own time counts, too
	b := startWith(t, server, t.TempDir(), echo, func(cfg *matrix.Config) { cfg.Hurry(); cfg.Clock(stopped) }, you.UserID())
	plain, secret := chat(t, s, you, b, false), chat(t, s, you, b, true)
	count := func(room string) (n int) {
		for _, send := range s.Sends() {
			if send.User == b.UserID() && send.Room == room {
				n++
			}
		}
		return n
	}
	text := "a beginning that is long enough to be shown"
	grow := func() {
		text += strings.Repeat(" and more", 10)
		for _, room := range []string{plain, secret} {
			b.says(room, session.Outgoing{ID: "answer " + room, Text: text, Draft: true})
		}
	}
	// settle waits until all that is due is sent: what is said elsewhere comes after it.
	other := chat(t, s, you, b, false)
	settle := func() {
		t.Helper()
		for range 2 {
			b.Look()
			n := count(other)
			say(t, you, other, "and?")
			await(t, s, "no answer", func() bool { return count(other) > n })
		}
	}
	grow()
	clock.advance(1100 * time.Millisecond)
	settle()
	await(t, s, "no beginning", func() bool { return count(plain) == 1 && count(secret) == 1 })
	settle() // what comes next is due when they are done with
	grow()
	clock.advance(900 * time.Millisecond)
	settle()
	if p, e := count(plain), count(secret); p != 1 || e != 1 {
		t.Errorf("within a second: %d and %d events", p, e)
	}
	clock.advance(900 * time.Millisecond)
	settle()
	await(t, s, "nothing more in the open room after 1.8 s", func() bool { return count(plain) == 2 })
	if e := count(secret); e != 1 {
		t.Errorf("after 1.8 s: %d events in the encrypted room", e)
	}
	clock.advance(1500 * time.Millisecond)
	settle()
	await(t, s, "nothing more in the encrypted room after 3.3 s", func() bool { return count(secret) == 2 })
}
