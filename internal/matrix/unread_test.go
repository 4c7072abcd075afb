package matrix_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
)

// The database fails in the moment in which a key arrives: the message that
// waits for it is not forgotten.
// Holds F19.
func TestKeyArrivesAtABadMoment(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID(), friend.UserID())
	room, other := chat(t, s, you, b, true), chat(t, s, friend, b, true)
	s.Fault(func(r *matrixtest.Request) bool { // it comes once, and cannot be asked for
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request")
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	th := steal(t, s, b.UserID())
	say(t, you, room, "one")
	b.utd(1)
	peertest.Next(t, you, messageIn(room)) // the notice: from now on the event waits for its key only
	db := openDB(t, dir)
	defer db.Close()
	exec := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		ok(t, err)
	}
	exec(`CREATE TRIGGER full BEFORE UPDATE ON inbox WHEN new.next_at = 1 BEGIN SELECT raise(ABORT, 'the disk is full'); END`)
	th.giveBack(t, true)
	b.logs("the disk is full")
	exec(`DROP TRIGGER full`)
	say(t, friend, other, "two") // its key wakes whoever reads
	hears(t, you, room, "echo: **one**")
}

// logs waits until the log has the words.
func (b *bot) logs(words string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), peertest.Patience)
	defer cancel()
	for !strings.Contains(b.log.String(), words) {
		select {
		case <-ctx.Done():
			b.t.Fatalf("the log does not say %q", words)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
