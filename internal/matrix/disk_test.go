package matrix_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// everyConn runs a statement on every connection that the pool can have.
func everyConn(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	n := db.Stats().MaxOpenConnections
	db.SetMaxIdleConns(n)
	for range n {
		conn, err := db.Conn(t.Context())
		ok(t, err)
		defer conn.Close() // only after all are taken
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// stubborn answers as echo does, and does not give up when the answer cannot
// be stored.
func stubborn(b *bot, in session.Inbound) {
	ctx := context.Background()
	for _, f := range []func() error{
		func() error {
			return b.Say(ctx, in.Room, session.Outgoing{ID: "re-" + in.ID, Text: "echo: **" + in.Text + "**", ReplyTo: in.ID})
		},
		func() error { return b.Handled(ctx, in.ID) },
	} {
		for f() != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// writable is a bot whose database a test can make unwritable.
type writable struct {
	*bot
	you  *peer.Peer
	s    *matrixtest.Server
	db   *sql.DB // the bot's own connections
	room string
}

// newWritable starts a bot in dir, with a chat in which each message has a key
// of its own if it is encrypted.
func newWritable(t *testing.T, dir string, encrypted bool) *writable {
	t.Helper()
	s, server := pretend(t)
	w := &writable{s: s, you: person(t, s, "you")}
	w.bot = startWith(t, server, dir, stubborn, func(cfg *matrix.Config) { cfg.Hurry(); w.db = cfg.DB }, w.you.UserID())
	w.room = chat(t, s, w.you, w.bot, encrypted)
	if encrypted {
		rotate(t, s, w.you, w.room)
	}
	w.exchange("hello")
	await(t, s, "not handled", func() bool { return w.Status(t.Context()).Inbox+w.Status(t.Context()).Outbox == 0 })
	return w
}

// exchange says texts and expects an answer to each, and nothing else.
func (w *writable) exchange(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		say(w.t, w.you, w.room, text)
	}
	w.answers(texts...)
}

func (w *writable) answers(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if e := peertest.Next(w.t, w.you, spoken(w.room, w.UserID())); e.Body != "echo: **"+text+"**" {
			w.t.Errorf("got %.60q, want the answer to %.40q", e.Body, text)
		}
	}
}

func (w *writable) token() (token string) {
	w.t.Helper()
	if err := w.db.QueryRowContext(w.t.Context(), `SELECT next_batch FROM matrix_sync`).Scan(&token); err != nil {
		w.t.Fatal(err)
	}
	return token
}

// failures waits until at least n writes have failed since before.
func (w *writable) failures(before, n int) {
	w.t.Helper()
	w.becomes("no write has failed: the test tests nothing", func(matrix.Status) bool { return w.failed()-before >= n })
}

func (w *writable) failed() int {
	log := w.log.String()
	return strings.Count(log, "the database cannot be written") + strings.Count(log, "sync failed")
}

// whole checks that nothing was lost, and that the database is in order.
func (w *writable) whole() {
	w.t.Helper()
	everyConn(w.t, w.db, `PRAGMA busy_timeout = 5000`)
	w.exchange("the last one")
	await(w.t, w.s, "still a problem", func() bool { return w.Status(w.t.Context()).Problem == "" })
	st := w.Status(w.t.Context())
	if st.Undecryptable != 0 || st.Lost != 0 || st.Dead != 0 {
		w.t.Errorf("status %+v", st)
	}
	var verdict string
	if err := w.db.QueryRowContext(w.t.Context(), `PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		w.t.Errorf("integrity: %s, %v", verdict, err)
	}
}

// Another program holds the database for much longer than a statement waits:
// nothing is acknowledged meanwhile, nothing lost, nothing answered twice.
// Holds F45.
func TestDatabaseLocked(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			dir := t.TempDir()
			w := newWritable(t, dir, encrypted)
			everyConn(t, w.db, `PRAGMA busy_timeout = 10`) // instead of holding it for half a minute
			other := openDB(t, dir)
			t.Cleanup(func() { _ = other.Close() })
			tx, err := other.BeginTx(t.Context(), nil) // takes the write lock
			ok(t, err)
			before, token := w.failed(), w.token()
			texts := []string{"one", "two", "three"}
			for _, text := range texts {
				say(t, w.you, w.room, text)
			}
			w.failures(before, 2)
			if now := w.token(); now != token {
				t.Errorf("the token went from %s to %s while nothing could be stored", token, now)
			}
			if st := w.Status(t.Context()); !strings.Contains(st.Problem, "locked") {
				t.Errorf("status says %q", st.Problem)
			}
			ok(t, tx.Rollback())
			w.answers(texts...)
			w.whole()
		})
	}
}

// A message is sent while the database is held: what became of it can be noted
// only later. It is there once, and is not sent again and again meanwhile.
// Holds F45.
func TestSentButNotNoted(t *testing.T) {
	dir := t.TempDir()
	w := newWritable(t, dir, false) // where sending needs no keys, and so nothing else waits
	everyConn(t, w.db, `PRAGMA busy_timeout = 10`)
	other := openDB(t, dir)
	t.Cleanup(func() { _ = other.Close() })
	held := make(chan *sql.Tx, 1)
	w.s.Fault(matrixtest.On("send").By(w.UserID()).Times(1), func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		tx, err := other.BeginTx(context.Background(), nil)
		if err != nil {
			t.Error(err)
		}
		held <- tx
		next.ServeHTTP(rw, r)
	})
	before := w.s.Count("send")
	w.says(w.room, session.Outgoing{ID: "once", Text: "once"})
	tx := <-held
	if e := peertest.Next(t, w.you, spoken(w.room, w.UserID())); e.Body != "once" {
		t.Errorf("got %+v", e)
	}
	time.Sleep(time.Second) // enough for hundreds of tries, were there no pause between them
	if n := w.s.Count("send") - before; n > 5 {
		t.Errorf("sent %d times within a second", n)
	}
	ok(t, tx.Rollback())
	await(t, w.s, "not noted", func() bool { return w.Status(t.Context()).Outbox == 0 })
	w.whole() // nothing else comes before its answer
}
