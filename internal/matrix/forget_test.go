package matrix_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"reverie/internal/matrix/peer/peertest"
)

// A message that was answered is taken back: what became of it is forgotten, and
// that is tried until it succeeds, also after a restart.
func TestTakenBackAfterTheAnswer(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, echo)
	regret := say(t, you, room, "my secret")
	peertest.Next(t, you, messageIn(room))
	var tried atomic.Int32
	b.OnRedaction(func(context.Context, string) error { tried.Add(1); return errors.New("not now") })
	s.Post(you.UserID(), room, "m.room.redaction", map[string]any{"redacts": regret})
	await(t, s, "nobody is told", func() bool { return tried.Load() > 0 })
	b.stop()
	told := make(chan string, 10)
	b = b.again(echo)
	b.OnRedaction(func(_ context.Context, event string) error { told <- event; return nil })
	other := say(t, you, room, "another")
	peertest.Next(t, you, messageIn(room))
	s.Post(you.UserID(), room, "m.room.redaction", map[string]any{"redacts": other})
	got := map[string]bool{<-told: true, <-told: true}
	if !got[other] || len(got) != 2 {
		t.Errorf("told of %v", got)
	}
}
