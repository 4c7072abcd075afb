package matrix_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
)

// dead makes the database take nothing any more from the statement on that
// would insert or update a row of table for which when holds, as though the
// program had been killed there. The returned function undoes it.
func dead(t *testing.T, db *sql.DB, table, when string) (revive func()) {
	t.Helper()
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'`)
	ok(t, err)
	var tables, triggers []string
	for rows.Next() {
		var name string
		ok(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	ok(t, rows.Err())
	exec(`CREATE TABLE death (at TEXT)`)
	trigger := func(table, action, when, do string) {
		name := fmt.Sprint("death", len(triggers))
		triggers = append(triggers, name)
		exec(`CREATE TRIGGER ` + name + ` BEFORE ` + action + ` ON ` + table + ` WHEN ` + when + ` BEGIN ` + do + `; END`)
	}
	for _, action := range []string{"INSERT", "UPDATE", "DELETE"} {
		for _, name := range tables {
			trigger(name, action, `EXISTS (SELECT 1 FROM death)`, `SELECT raise(ABORT, 'dead')`)
		}
		if action != "DELETE" { // FAIL keeps what the statement has done before, and so the note
			trigger(table, action, `NOT EXISTS (SELECT 1 FROM death) AND (`+when+`)`, `INSERT INTO death VALUES ('`+table+`'); SELECT raise(FAIL, 'dead')`)
		}
	}
	return func() {
		t.Helper()
		for _, name := range triggers {
			exec(`DROP TRIGGER ` + name)
		}
		exec(`DROP TABLE death`)
	}
}

// died waits until the program has met its death, and has not been able to store
// the token of the sync in which it did.
func (b *bot) died(s *matrixtest.Server, db *sql.DB) {
	b.t.Helper()
	await(b.t, s, "it lives", func() bool {
		var n int
		return db.QueryRowContext(b.t.Context(), `SELECT count(*) FROM death`).Scan(&n) == nil && n == 1 && strings.Contains(b.log.String(), "sync failed")
	})
	b.stop()
}

// keyless lets the bot get room keys from nowhere but the messages that bring
// them.
func keyless(s *matrixtest.Server) {
	s.Fault(func(r *matrixtest.Request) bool {
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request") || strings.Contains(r.Path, "/room_keys/keys") && r.Method == http.MethodGet
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
}

// The program is killed before any one of the writes that an Olm message with a
// room key makes. The homeserver sends it again, and nobody else has the key.
func TestDiedWhileAKeyWasStored(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"crypto_megolm_inbound_session", "crypto_olm_message_hash", "crypto_olm_session", "crypto_account"} {
		for _, known := range []bool{false, true} {
			if known && table == "crypto_account" {
				continue // only the first message takes a one-time key
			}
			t.Run(fmt.Sprintf("%s, known Olm session %v", table, known), func(t *testing.T) {
				t.Parallel()
				s, server := pretend(t)
				keyless(s)
				you := person(t, s, "you")
				dir := t.TempDir()
				b := startWith(t, server, dir, echo, hurry, you.UserID())
				room := chat(t, s, you, b, true)
				rotate(t, s, you, room)
				if known {
					say(t, you, room, "hello")
					hears(t, you, room, "echo: **hello**")
				}
				await(t, s, "not done", func() bool { return b.Status(t.Context()).Inbox+b.Status(t.Context()).Outbox == 0 })
				db := openDB(t, dir)
				defer db.Close()
				when := `1`
				if table == "crypto_megolm_inbound_session" {
					when = `NEW.source_user = '` + you.UserID() + `'`
				}
				revive := dead(t, db, table, when)
				say(t, you, room, "one")
				b.died(s, db)
				revive()
				b = b.again(echo)
				hears(t, you, room, "echo: **one**")
				say(t, you, room, "two")
				hears(t, you, room, "echo: **two**")
				b.utd(0)
			})
		}
	}
}

// The one-time key that a new Olm session has used is used up.
func TestOneTimeKeyIsUsedUp(t *testing.T) {
	t.Parallel()
	_, you, b, room := chatting(t, true, echo)
	before, err := b.OneTimeKeys(t.Context())
	ok(t, err)
	say(t, you, room, "one")
	hears(t, you, room, "echo: **one**")
	after, err := b.OneTimeKeys(t.Context())
	ok(t, err)
	maps.DeleteFunc(before, func(key string, _ bool) bool { return after[key] })
	if len(before) != 1 {
		t.Errorf("%d one-time keys were used up", len(before))
	}
}

// Many keys come at once, among them one that breaks the library's work on it,
// and the program is killed at each of them in turn.
func TestDiedAtEachOfManyKeys(t *testing.T) {
	t.Parallel()
	const n = 4
	s, server := pretend(t)
	keyless(s)
	you := person(t, s, "you")
	poison := s.Account("poison", "a long enough password")
	dir := t.TempDir()
	stumble := func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Log = slog.New(stumbling{cfg.Log.Handler(), poison})
	}
	b := startWith(t, server, dir, echo, stumble, you.UserID())
	room := chat(t, s, you, b, true)
	rotate(t, s, you, room)
	say(t, you, room, "hello")
	hears(t, you, room, "echo: **hello**")
	b.stop()
	var want []string
	for i := range n {
		text := fmt.Sprint("number ", i)
		say(t, you, room, text)
		s.SendToDevice(poison, b.UserID(), "m.room.encrypted", map[string]any{"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "x", "ciphertext": map[string]any{}})
		want = append(want, "echo: **"+text+"**")
	}
	db := openDB(t, dir)
	defer db.Close()
	for i := range n {
		revive := dead(t, db, "crypto_megolm_inbound_session", fmt.Sprintf(`NEW.source_user = '%s' AND
			(SELECT count(*) FROM crypto_megolm_inbound_session WHERE source_user = '%[1]s') > %d`, you.UserID(), i))
		b = startWith(t, server, dir, echo, stumble, you.UserID())
		b.died(s, db)
		if !strings.Contains(b.log.String(), "a fault for a test") && i > 0 {
			t.Error("the library did not stumble")
		}
		revive()
	}
	startWith(t, server, dir, echo, stumble, you.UserID())
	hears(t, you, room, want...)
}

// The library breaks over a key that its Olm message has just been opened for:
// the keys that come after it in the same Olm session are taken, now and after a
// restart.
func TestPanicBehindAnOpenedMessage(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	keyless(s)
	you := person(t, s, "you")
	dir := t.TempDir()
	stumble := atMessage("matrix library: Failed to store new inbound group session", func() { panic("a fault for a test") })
	b := startWith(t, server, dir, echo, stumble, you.UserID())
	broken, room := chat(t, s, you, b, true), chat(t, s, you, b, true)
	db := openDB(t, dir)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TRIGGER broken BEFORE INSERT ON crypto_megolm_inbound_session
		WHEN NEW.source_user = '`+you.UserID()+`' AND NEW.room_id = '`+broken+`' BEGIN SELECT raise(ABORT, 'this key cannot be stored'); END`); err != nil {
		t.Fatal(err)
	}
	say(t, you, broken, "nobody can read this")
	b.utd(1)
	if !strings.Contains(b.log.String(), "a fault for a test") {
		t.Error("the library did not stumble")
	}
	say(t, you, room, "one")
	hears(t, you, room, "echo: **one**")
	b.stop()
	rotate(t, s, you, room)
	b = startWith(t, server, dir, echo, stumble, you.UserID())
	say(t, you, room, "two")
	hears(t, you, room, "echo: **two**")
	b.utd(1)
}

// The program ends while the disk is full and keys wait to be stored.
func TestEndWhileKeysWaitForTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWritable(t, dir, true)
	keyless(w.s)
	everyConn(t, w.db, `PRAGMA max_page_count = 1`)
	before := w.failed()
	var texts []string
	for i := range 25 {
		texts = append(texts, fmt.Sprint("secret ", i))
		say(t, w.you, w.room, texts[i])
	}
	w.failures(before, 2)
	w.stop()
	w.bot = startWith(t, w.server, dir, stubborn, func(cfg *matrix.Config) { cfg.Hurry(); w.db = cfg.DB }, w.you.UserID())
	w.answers(texts...)
	w.whole()
}

// rotate gives each message in the room a key of its own.
func rotate(t *testing.T, s *matrixtest.Server, you *peer.Peer, room string) {
	t.Helper()
	s.SetState(you.UserID(), room, "m.room.encryption", "", content{"algorithm": "m.megolm.v1.aes-sha2", "rotation_period_msgs": 1})
	s.Say(s.Account("ghost", botPassword), room, "the state is there")
	peertest.Next(t, you, func(e peer.Event) bool { return e.Body == "the state is there" })
}

// stumbling panics when the crypto library has something to say about a sender:
// in the middle of the library's work on one event.
type stumbling struct {
	slog.Handler
	over string // user id
}

func (h stumbling) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "matrix library: Failed to decrypt to-device event" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "sender" && a.Value.String() == h.over {
				panic("a fault for a test")
			}
			return true
		})
	}
	return h.Handler.Handle(ctx, r)
}

func (h stumbling) WithAttrs(a []slog.Attr) slog.Handler {
	return stumbling{h.Handler.WithAttrs(a), h.over}
}
