package matrix_test

import (
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
)

// Where the bot may not speak, no model is asked: nothing is delivered. Who
// asked is told in their direct chat, once a day; and with the right to speak
// the bot answers again.
// Holds F30, M56.
func TestMuted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		encrypted bool
		levels    map[string]any
	}{
		{"everybody without a level", false, map[string]any{"events_default": 50}},
		{"everybody without a level, encrypted", true, map[string]any{"events_default": 50}},
		{"the bot alone", false, map[string]any{"users": map[string]int{"@reverie:matrix.test": -1}}},
		{"encrypted messages", true, map[string]any{"events": map[string]int{"m.room.encrypted": 50}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b := meeting(t, echo)
			dm := chat(t, s, you, b, true)
			room := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: c.encrypted, Invite: []string{b.UserID()}})
			joined(t, you, room, b.UserID())
			ask := func(text string) {
				t.Helper()
				sayTo(t, you, room, text, b.UserID())
			}
			ask("one")
			hears(t, you, room, "echo: **one**")
			users := map[string]int{you.UserID(): 100}
			if c.levels["users"] != nil {
				users[b.UserID()] = -1
			}
			levels := map[string]any{"users": users}
			for k, v := range c.levels {
				if k != "users" {
					levels[k] = v
				}
			}
			s.SetState(you.UserID(), room, "m.room.power_levels", "", levels)
			ask("two")
			if e := peertest.Next(t, you, messageIn(dm)); !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "not allowed to speak") {
				t.Errorf("in the direct chat came %+v", e)
			}
			ask("three")
			say(t, you, dm, "and here?")
			hears(t, you, dm, "echo: **and here?**")
			sends := len(s.Sends())
			s.SetState(you.UserID(), room, "m.room.power_levels", "", map[string]any{"users": map[string]int{you.UserID(): 100}})
			ask("four")
			hears(t, you, room, "echo: **four**")
			for _, want := range []string{"one", "and here?", "four"} {
				if in := b.next(); in.Text != want {
					t.Errorf("delivered %q, want %q: a model was asked for what cannot be said", in.Text, want)
				}
			}
			tried := 0
			for _, send := range s.Sends()[:sends] {
				if send.User == b.UserID() && send.Room == room {
					tried++
				}
			}
			if tried != 1 { // the answer to the first
				t.Errorf("tried to say %d messages", tried)
			}
			if st := b.Status(t.Context()); st.Dead != 0 || st.Inbox > 1 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// Without a direct chat there is nobody to tell; the others go on.
// Holds F30, M56.
func TestMutedWithoutADirectChat(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	other := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	joined(t, you, other, b.UserID())
	s.SetState(you.UserID(), room, "m.room.power_levels", "", map[string]any{"users": map[string]int{you.UserID(): 100}, "events_default": 1})
	for _, in := range []string{room, other} {
		sayTo(t, you, in, "hello", b.UserID())
	}
	e := peertest.Next(t, you, func(e peer.Event) bool { return e.Kind == peer.Message })
	if e.Room != other || e.Body != "echo: **hello**" {
		t.Errorf("got %+v", e)
	}
	if in := b.next(); in.Room != other || len(b.heard) > 0 {
		t.Errorf("asked about %+v, and about %d more", in, len(b.heard))
	}
}
