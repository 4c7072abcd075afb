package matrix_test

import (
	"strings"
	"sync"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// The bot is thrown out of a room while it answers there: what is asked there
// needs no answer any more, what was to be said is given up without trying, the
// other rooms do not notice, and it comes back when it is invited, not before.
// Holds F29, M55.
func TestRemovedWhileAnswering(t *testing.T) {
	t.Parallel()
	for _, membership := range []string{"leave", "ban"} {
		t.Run(membership, func(t *testing.T) {
			s, server := pretend(t)
			you := person(t, s, "you")
			hold := make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			began := make(chan struct{}, 1)
			b := startWith(t, server, t.TempDir(), func(b *bot, in session.Inbound) {
				if in.Text != "long" {
					echo(b, in)
					return
				}
				b.tells(in.Room, session.Outgoing{ID: "re-" + in.ID, Text: strings.Repeat("a beginning ", 10), ReplyTo: in.ID, Draft: true})
				began <- struct{}{}
				<-hold
				for range 5 { // the rest of the stream
					b.tells(in.Room, session.Outgoing{ID: "re-" + in.ID, Text: strings.Repeat("a beginning, and more ", 20), ReplyTo: in.ID, Draft: true})
				}
				echo(b, in)
			}, hurry, you.UserID())
			t.Cleanup(release) // before the bot is stopped
			other := chat(t, s, you, b, true)
			room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Encrypted: true, Invite: []string{b.UserID()}})
			joined(t, you, room, b.UserID())
			long := say(t, you, room, "long")
			<-began
			if e := peertest.Next(t, you, messageIn(room)); !e.Live {
				t.Errorf("got %+v", e)
			}
			waits := say(t, you, room, "and then this")
			await(t, s, "the second question is not there", func() bool { return b.Status(t.Context()).Inbox == 2 })
			s.SetState(you.UserID(), room, "m.room.member", b.UserID(), map[string]any{"membership": membership})
			for _, id := range []string{long, waits} {
				await(t, s, "its messages wait on", func() bool {
					gone, err := b.Withdrawn(t.Context(), id)
					if err != nil {
						t.Error(err)
					}
					return gone
				})
			}
			tried := func() (n int) {
				return s.Count("send") + s.Count("state") + s.Count("join") + s.Count("members")
			}
			before := tried()
			release()
			say(t, you, other, "still there?")
			e := peertest.Next(t, you, func(e peer.Event) bool { return e.Sender == b.UserID() && e.Kind == peer.Message })
			if e.Room != other || e.Body != "echo: **still there?**" {
				t.Errorf("got %+v", e)
			}
			await(t, s, "the answer is not given up", func() bool { st := b.Status(t.Context()); return st.Dead >= 1 && st.Outbox == 0 && st.Inbox == 0 })
			if n := tried() - before; n > 8 { // yours and its one in the other room, and what it tries here
				t.Errorf("%d requests after it was thrown out", n)
			}
			if m := s.Membership(room, b.UserID()); m != membership {
				t.Errorf("membership %q", m)
			}
			b = b.again(echo)
			say(t, you, other, "after a restart?")
			hears(t, you, other, "echo: **after a restart?**")
			if m := s.Membership(room, b.UserID()); m != membership {
				t.Errorf("membership %q", m)
			}
			s.SetState(you.UserID(), room, "m.room.member", b.UserID(), map[string]any{"membership": "invite"})
			joined(t, you, room, b.UserID())
			say(t, you, room, "welcome back")
			hears(t, you, room, "echo: **welcome back**")
		})
	}
}

// The bot may not speak in a room, or the homeserver refuses what it says without a reason that the
// bot could have seen: one try for each message, and the next room is not held up.
// Holds F29, F30, M56.
func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	room, other := chat(t, s, you, b, true), chat(t, s, you, b, true)
	converse(t, you, b, room, "one")
	hook := s.Fault(matrixtest.On("send").By(b.UserID()).In(room), matrixtest.Status(403, "M_FORBIDDEN"))
	for _, text := range []string{"two", "three"} {
		say(t, you, room, text)
	}
	await(t, s, "the answers are not given up", func() bool { return b.Status(t.Context()).Dead == 2 })
	say(t, you, other, "here?")
	hears(t, you, other, "echo: **here?**")
	if n := hook.Hits(); n != 2 {
		t.Errorf("%d tries to send two messages", n)
	}
	hook.Remove()
	say(t, you, room, "four")
	hears(t, you, room, "echo: **four**")
}
