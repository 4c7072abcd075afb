package matrix_test

import (
	"testing"

	"reverie/internal/matrix/peer/peertest"
)

// TestLeft: a room is left from when the bot is put out of it until it is there again.
func TestLeft(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	left := func(room string) bool {
		t.Helper()
		gone, err := b.Left(t.Context(), room)
		if err != nil {
			t.Fatal(err)
		}
		return gone
	}
	room := chat(t, s, you, b, false)
	say(t, you, room, "hello")
	peertest.Next(t, you, messageIn(room))
	if left(room) || left("!unknown:example.org") {
		t.Error("a room where the bot is, or one it never was in, counts as left")
	}
	s.SetState(you.UserID(), room, "m.room.member", b.UserID(), content{"membership": "leave"})
	await(t, s, "the bot has not noticed", func() bool { return b.Status(t.Context()).Rooms == 0 })
	if !left(room) {
		t.Error("the room it was put out of does not count as left")
	}
	s.SetState(you.UserID(), room, "m.room.member", b.UserID(), content{"membership": "invite"})
	joined(t, you, room, b.UserID())
	say(t, you, room, "welcome back")
	peertest.Next(t, you, messageIn(room))
	if left(room) {
		t.Error("the room it came back to counts as left")
	}
}
