package matrix_test

import (
	"context"
	"net/http"
	"slices"
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

// The key comes when the first of two messages has just been tried in vain, and the
// second is tried next: they are read in their order.
func TestKeyArrivesBetweenTwoTries(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	s.Fault(func(r *matrixtest.Request) bool { // it comes once, and cannot be asked for
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request")
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	th := steal(t, s, b.UserID())
	first := say(t, you, room, "one")
	say(t, you, room, "two")
	b.utd(2)
	peertest.Next(t, you, messageIn(room)) // the notice
	db := openDB(t, b.dir)
	defer db.Close()
	for _, statement := range []string{`CREATE TABLE tried (once INTEGER)`,
		`CREATE TRIGGER late AFTER UPDATE ON inbox WHEN new.next_at = 1 AND new.id = '` + first + `' AND NOT EXISTS (SELECT 1 FROM tried)
			BEGIN INSERT INTO tried VALUES (1); UPDATE inbox SET next_at = 0 WHERE id = new.id; END`} {
		_, err := db.ExecContext(t.Context(), statement)
		ok(t, err)
	}
	th.giveBack(t, true)
	hears(t, you, room, "echo: **one**", "echo: **two**")
	b.utd(0)
}

// The database fails at the start, when all that waits is looked at.
// Holds F19.
func TestStartAtABadMoment(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID(), friend.UserID())
	room, other := chat(t, s, you, b, true), chat(t, s, friend, b, true)
	th := steal(t, s, b.UserID())
	id := say(t, you, room, "one")
	b.utd(1)
	peertest.Next(t, you, messageIn(room)) // the notice: from now on the event waits for its key only
	db := openDB(t, dir)
	defer db.Close()
	var raw, session string
	ok(t, db.QueryRowContext(t.Context(), `SELECT raw, megolm FROM inbox WHERE id = ?`, id).Scan(&raw, &session))
	th.giveBack(t, true)
	peertest.Next(t, you, messageIn(room))
	b.stop()
	exec := func(statement string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement, args...)
		ok(t, err)
	}
	exec(`UPDATE inbox SET state = 'utd', raw = ?, megolm = ?, next_at = 0 WHERE id = ?`, raw, session, id)
	exec(`CREATE TRIGGER full BEFORE UPDATE ON inbox WHEN new.next_at = 1 BEGIN SELECT raise(ABORT, 'the disk is full'); END`)
	b = b.again(nil)
	b.logs("the disk is full")
	exec(`DROP TRIGGER full`)
	say(t, friend, other, "two") // its key wakes whoever reads
	heard := []string{b.next().Text, b.next().Text}
	slices.Sort(heard)
	if !slices.Equal(heard, []string{"one", "two"}) {
		t.Errorf("heard %q", heard)
	}
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
