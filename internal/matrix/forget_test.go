package matrix_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/store/storetest"
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

// What was sent is a copy; what waits to be sent is a promise.
func TestForgetWhatWasSent(t *testing.T) {
	db, err := storetest.Open(t, filepath.Join(t.TempDir(), "bot.db"))
	ok(t, err)
	defer db.Close()
	for _, state := range []string{"sent", "dead", "pending"} {
		if _, err := db.Exec(`INSERT INTO outbox (id, room, text, poll, state, created_at) VALUES (?1, '!r', 'I know that tea is hot.', ?2, ?1, 0)`,
			state, `{"Text":"May I note \"tea is hot\"?"}`); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := db.BeginTx(t.Context(), nil)
	ok(t, err)
	ok(t, matrix.Forget(t.Context(), tx, []string{"tea is hot", `"[forgotten]"?`, ""}))
	ok(t, tx.Commit())
	for state, want := range map[string]string{"sent": "I know that [forgotten].", "dead": "I know that [forgotten].", "pending": "I know that tea is hot."} {
		var got string
		var poll string
		if err := db.QueryRow(`SELECT text, poll FROM outbox WHERE id = ?`, state).Scan(&got, &poll); err != nil || got != want {
			t.Errorf("%s: %q, %v", state, got, err)
		}
		if gone := poll == `{"Text":"May I note [forgotten]"}`; gone != (state != "pending") { // also across what JSON escapes
			t.Errorf("%s: the poll is %s", state, poll)
		}
	}
}
