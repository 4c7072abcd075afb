package matrix_test

import (
	"maps"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
)

// Where the bot may not speak, no model is asked: nothing is delivered. Who
// asked is told in their direct chat, once a day, if there is one; with the right to speak
// the bot answers again.
// Holds F30, M56.
func TestMuted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		encrypted, dm bool
		levels        map[string]any
	}{
		{"everybody without a level", false, true, map[string]any{"events_default": 50}},
		{"encrypted messages", true, true, map[string]any{"events": map[string]int{"m.room.encrypted": 50}}},
		{"without a direct chat", false, false, map[string]any{"events_default": 50}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b := meeting(t, echo)
			other := chat(t, s, you, b, true)
			if !c.dm {
				other = group(t, s, you, b)
			}
			room := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: c.encrypted, Invite: []string{b.UserID()}})
			joined(t, you, room, b.UserID())
			levels := func(more map[string]any) {
				all := map[string]any{"users": map[string]int{you.UserID(): 100}}
				maps.Copy(all, more)
				s.SetState(you.UserID(), room, "m.room.power_levels", "", all)
			}
			sayTo(t, you, room, "one", b.UserID())
			hears(t, you, room, "echo: **one**")
			levels(c.levels)
			sayTo(t, you, room, "two", b.UserID())
			sayTo(t, you, room, "three", b.UserID())
			if c.dm {
				if e := peertest.Next(t, you, messageIn(other)); !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "not allowed to speak") {
					t.Errorf("in the direct chat came %+v", e)
				}
			}
			sayTo(t, you, other, "and here?", b.UserID())
			hears(t, you, other, "echo: **and here?**")
			levels(nil)
			sayTo(t, you, room, "four", b.UserID())
			hears(t, you, room, "echo: **four**")
			for _, want := range []string{"one", "and here?", "four"} {
				if in := b.next(); in.Text != want {
					t.Errorf("delivered %q, want %q: a model was asked for what cannot be said", in.Text, want)
				}
			}
			if st := b.Status(t.Context()); st.Dead != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}
