package matrix_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
)

// An answer that tells of a room's state from before a change, and comes after it, does
// not undo what the bot is called there.
func TestOvertakenState(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	room := group(t, s, you, b)
	written, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(written); <-release })
	s.Fault(matrixtest.On("state").By(b.UserID()).In(room), matrixtest.Changed(func(*httptest.ResponseRecorder, *http.Request) { first() }))
	s.Post(you.UserID(), room, "m.room.message", text2("first", b.UserID()))
	b.next()
	<-written
	s.SetState(b.UserID(), room, "m.room.member", b.UserID(), content{"membership": "join", "displayname": "Marvin"})
	heard := func(text, want string) {
		t.Helper()
		s.Post(you.UserID(), room, "m.room.message", text2(text, b.UserID()))
		if in := b.next(); in.Text != want {
			t.Errorf("heard %q, want %q", in.Text, want)
		}
	}
	heard("Marvin: second", "second")
	close(release)
	if e := peertest.Next(t, you, spoken(room, b.UserID())); e.Body != "echo: **first**" {
		t.Errorf("said %q", e.Body)
	}
	heard("Marvin: third", "third")
}
