package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// ending runs the bot in dir and returns the error that ends it.
func ending(t *testing.T, server *homeserver.Server, dir string, change func(*matrix.Config), owners ...string) error {
	t.Helper()
	db := openDB(t, dir)
	defer db.Close()
	cfg := config(server, dir, db, owners...)
	cfg.Hurry()
	if change != nil {
		change(&cfg)
	}
	c, err := matrix.Open(t.Context(), cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
	defer cancel()
	err = c.Run(ctx, handler{deliver: func(ctx context.Context, in chat.Inbound) error { return c.Ack(ctx, chat.HeadOf(in).ID) }})
	if ctx.Err() != nil {
		t.Fatal("it goes on and on")
	}
	return err
}

func wants(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want a word about %q", err, w)
		}
	}
}

// copyDB copies the database of a stopped bot.
func copyDB(t *testing.T, from, to string) {
	t.Helper()
	db := openDB(t, from)
	defer db.Close()
	execute(t, db, `VACUUM INTO ?`, to)
}

func restoreDB(t *testing.T, dir, from string) {
	t.Helper()
	for _, name := range []string{"bot.db", "bot.db-wal", "bot.db-shm"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	data := expect.Must(os.ReadFile(from))(t)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "bot.db"), data, 0o600))
}

// rows counts the rows of a table in the bot's database.
func rows(t *testing.T, dir, table string) (n int) {
	t.Helper()
	db := openDB(t, dir)
	defer db.Close()
	expect.OK(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n))
	return n
}

// bot.db is restored from an older copy: it generates one-time key IDs again that the homeserver has with
// other contents. The bot stops with an error after a few requests and deletes nothing. The next start uses a
// new, verified device.
// Holds F27.
func TestOldCopyOfTheKeys(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "old.db")
	s, you, b, room := chatting(t, true, echo)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	b.stop()
	copyDB(t, b.dir, old)
	claim(t, b.server, b.UserID(), device, 20)
	b = startWith(t, b.server, b.dir, echo, hurry, you.UserID()) // uploads new ones in their place
	converse(t, you, b, room, "two")
	await(t, s, "no new keys were uploaded", func() bool { return s.OneTimeKeys(b.UserID(), device) >= 50 })
	b.stop()
	restoreDB(t, b.dir, old)
	claim(t, b.server, b.UserID(), device, 20)
	olm, megolm := rows(t, b.dir, "crypto_olm_session"), rows(t, b.dir, "crypto_megolm_inbound_session")
	uploads := s.Count("keys_upload")
	wants(t, ending(t, b.server, b.dir, func(cfg *matrix.Config) { cfg.Password, cfg.Token = "", b.account().token(t) }, you.UserID()), "older copy", "matrix.password")
	wants(t, ending(t, b.server, b.dir, nil, you.UserID()), "older copy", "nothing is deleted", "recovery.key", device)
	if n := s.Count("keys_upload") - uploads; n > 10 {
		t.Errorf("%d uploads were tried", n)
	}
	expect.Equal(t, rows(t, b.dir, "crypto_olm_session"), olm, "Olm sessions that are left")
	if n := rows(t, b.dir, "crypto_megolm_inbound_session"); n < megolm {
		t.Errorf("%d Megolm sessions are left of %d", n, megolm)
	}
	kept, err := filepath.Glob(filepath.Join(b.dir, "matrix", "account.json.*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the old login is kept as %q, %v", kept, err)
	}
	b = startWith(t, b.server, b.dir, echo, hurry, you.UserID())
	if st := b.Status(t.Context()); st.Device == device || !st.CrossSigned {
		t.Errorf("status %+v, want a new, cross-signed device", st)
	}
	await(t, s, "first sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	converse(t, you, b, room, "three")
	b = b.again(echo)
	converse(t, you, b, room, "four")
}

// claim claims one-time keys of a device, like a user who starts an Olm session.
func claim(t *testing.T, server *homeserver.Server, user, device string, n int) {
	t.Helper()
	var l login
	call(t, server, http.MethodPost, "login", "", map[string]any{
		"type": "m.login.password", "password": personPassword, "identifier": map[string]any{"type": "m.id.user", "user": "you"},
	}, &l)
	for range n {
		call(t, server, http.MethodPost, "keys/claim", l.AccessToken, map[string]any{"one_time_keys": map[string]any{user: map[string]string{device: "signed_curve25519"}}}, nil)
	}
}

func (l login) token(t *testing.T) string {
	t.Helper()
	if l.AccessToken == "" {
		t.Fatal("no access token")
	}
	return l.AccessToken
}

// bot.db and the homeserver have different keys of the same device. The advice, to move account.json away, leads to a new device.
// Holds F25.
func TestKeysOfAnotherDevice(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "old.db")
	s, you, b, room := chatting(t, true, echo)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	b.stop()
	copyDB(t, b.dir, old)
	// The same device with new keys: its data was lost and deleted once.
	s.DeleteDevices(b.UserID())
	for _, name := range []string{"bot.db", "bot.db-wal", "bot.db-shm"} {
		_ = os.Remove(filepath.Join(b.dir, name))
	}
	startWith(t, b.server, b.dir, echo, hurry, you.UserID()).stop()
	if now := b.account().DeviceID; now != device {
		t.Fatalf("device %s became %s", device, now)
	}
	restoreDB(t, b.dir, old)
	before := rows(t, b.dir, "crypto_olm_session")
	wants(t, ending(t, b.server, b.dir, nil, you.UserID()), device, "account.json away", "recovery.key")
	wants(t, ending(t, b.server, b.dir, nil, you.UserID()), device, "account.json away")
	expect.OK(t, os.Rename(filepath.Join(b.dir, "matrix/account.json"), filepath.Join(b.dir, "away")))
	b = b.again(echo)
	if st := b.Status(t.Context()); st.Device == device || !st.CrossSigned {
		t.Errorf("status %+v, want a new, cross-signed device", st)
	}
	await(t, s, "first sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	converse(t, you, b, room, "two")
	b.stop()
	if n := rows(t, b.dir, "crypto_olm_session"); n < before {
		t.Errorf("%d Olm sessions are left of %d", n, before)
	}
}

// Damaged files are reported and not changed: with the right file back, the bot continues with the same device.
// Holds F25.
func TestDamagedKeys(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.db")
	_, you, b, room := chatting(t, true, echo)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	b.stop()
	copyDB(t, b.dir, good)
	change := func(query string) func() {
		return func() {
			t.Helper()
			db := openDB(t, b.dir)
			defer db.Close()
			execute(t, db, query)
		}
	}
	for _, c := range []struct {
		name   string
		damage func()
		words  []string
	}{
		{"the device's keys are lost", change(`DELETE FROM crypto_account`), []string{"account.json away"}},
		{"the device's keys are garbled", change(`UPDATE crypto_account SET account = CAST('garbage' AS BLOB)`), []string{"pickle.key does not fit"}},
		{"all of it is gone", func() { restoreDB(t, b.dir, os.DevNull) }, []string{"account.json away"}},
		{"it is no database", func() { restoreDB(t, b.dir, filepath.Join(b.dir, "matrix/account.json")) }, []string{"bot.db"}},
		{"it is cut off", func() { expect.OK(t, os.Truncate(filepath.Join(b.dir, "bot.db"), 8192)) }, []string{"bot.db"}},
		{"the wrong pickle key", func() {
			expect.OK(t, os.WriteFile(filepath.Join(b.dir, "matrix/pickle.key"), []byte(strings.Repeat("k", 32)), 0o600))
		}, []string{"pickle.key does not fit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := expect.Must(os.ReadFile(filepath.Join(b.dir, "matrix/pickle.key")))(t)
			restoreDB(t, b.dir, good)
			c.damage()
			files := contents(t, filepath.Join(b.dir, "matrix"))
			for range 2 { // the first try must not have changed anything
				wants(t, tryOpen(t, b.server, b.dir, you.UserID()), c.words...)
			}
			expect.Equal(t, contents(t, filepath.Join(b.dir, "matrix")), files, "the files")
			restoreDB(t, b.dir, good)
			expect.OK(t, os.WriteFile(filepath.Join(b.dir, "matrix/pickle.key"), key, 0o600))
			if err := tryOpen(t, b.server, b.dir, you.UserID()); err != nil {
				t.Errorf("with the right file in its place: %v", err)
			}
		})
	}
	b = b.again(echo)
	expect.Equal(t, b.account().DeviceID, device, "the device")
	converse(t, you, b, room, "two")
}

// tryOpen opens the database and the client like the program.
func tryOpen(t *testing.T, server *homeserver.Server, dir, owner string) error {
	t.Helper()
	db, err := storetest.Open(t, filepath.Join(dir, "bot.db"))
	if err != nil {
		return err
	}
	defer func(db *store.DB) { err = errors.Join(err, db.Close()) }(db)
	_, err = matrix.Open(t.Context(), config(server, dir, db, owner))
	return err
}

// contents lists the files of a folder with their content.
func contents(t *testing.T, dir string) (all string) {
	t.Helper()
	entries := expect.Must(os.ReadDir(dir))(t)
	for _, e := range entries {
		data := expect.Must(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		all += fmt.Sprintf("%s: %q\n", e.Name(), data)
	}
	return all
}

// dead makes the database reject all writes from the first statement on that inserts or updates a row of
// table with the condition when, as if the program had been killed there. The returned function undoes that.
func dead(t *testing.T, db *store.DB, table, when string) (revive func()) {
	t.Helper()
	rows := expect.Must(db.QueryContext(t.Context(), `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'`))(t)
	var tables, triggers []string
	for rows.Next() {
		var name string
		expect.OK(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	expect.OK(t, rows.Err())
	execute(t, db, `CREATE TABLE death (at TEXT)`)
	trigger := func(table, action, when, do string) {
		name := fmt.Sprint("death", len(triggers))
		triggers = append(triggers, name)
		execute(t, db, `CREATE TRIGGER `+name+` BEFORE `+action+` ON `+table+` WHEN `+when+` BEGIN `+do+`; END`)
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
			execute(t, db, `DROP TRIGGER `+name)
		}
		execute(t, db, `DROP TABLE death`)
	}
}

// died waits until the writes fail, and checks that the sync's token was not stored.
func (b *bot) died(s *matrixtest.Server, db *store.DB) {
	b.t.Helper()
	await(b.t, s, "it lives", func() bool {
		var n int
		return db.QueryRowContext(b.t.Context(), `SELECT count(*) FROM death`).Scan(&n) == nil && n == 1 && strings.Contains(b.log.String(), "sync failed")
	})
	b.stop()
}

// keyless leaves Olm messages as the bot's only source of room keys.
func keyless(s *matrixtest.Server) {
	s.Fault(func(r *matrixtest.Request) bool {
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request") || strings.Contains(r.Path, "/room_keys/keys") && r.Method == http.MethodGet
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
}

// The program is killed before any of the writes for an Olm message with a room key. The homeserver sends it
// again, and no other device has the key.
func TestKilledWhileStoringKey(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"crypto_megolm_inbound_session", "crypto_olm_message_hash", "crypto_olm_session", "crypto_account"} {
		for _, known := range []bool{false, true} {
			if known && table == "crypto_account" {
				continue // only the first message takes a one-time key
			}
			t.Run(fmt.Sprintf("%s, known Olm session %v", table, known), func(t *testing.T) {
				t.Parallel()
				s, you, b := meeting(t, echo)
				keyless(s)
				room := metIn(t, s, you, b, true)
				rotate(t, s, you, room)
				if known {
					echoes(t, you, room, "hello")
				}
				await(t, s, "not done", func() bool { return b.Status(t.Context()).Inbox+b.Status(t.Context()).Outbox == 0 })
				db := openDB(t, b.dir)
				when := either(table == "crypto_megolm_inbound_session", `NEW.source_user = '`+you.UserID()+`'`, `1`)
				revive := dead(t, db, table, when)
				say(t, you, room, "one")
				b.died(s, db)
				revive()
				b = b.again(echo)
				hears(t, you, room, "echo: **one**")
				echoes(t, you, room, "two")
				b.utd(0)
			})
		}
	}
}

// The one-time key of a new Olm session is deleted.
func TestOneTimeKeyIsUsedUp(t *testing.T) {
	t.Parallel()
	_, you, b, room := chatting(t, true, echo)
	before := expect.Must(b.OneTimeKeys(t.Context()))(t)
	echoes(t, you, room, "one")
	after := expect.Must(b.OneTimeKeys(t.Context()))(t)
	maps.DeleteFunc(before, func(key string, _ bool) bool { return after[key] })
	expect.Equal(t, len(before), 1, "one-time keys were used up")
}

// Many keys arrive at once, one of them makes mautrix panic, and the program is killed at each of them in turn.
func TestKilledAtEachOfManyKeys(t *testing.T) {
	t.Parallel()
	const n = 4
	const poison = "@poison:matrix.test"
	stumble := atMessage("matrix library: Failed to decrypt to-device event", func(r slog.Record) { // in the middle of the library's work on one event
		if attribute(r, "sender") == poison {
			panic("a fault for a test")
		}
	})
	s, you, b := meetingWith(t, echo, stumble)
	keyless(s)
	s.Account("poison", personPassword)
	room := metIn(t, s, you, b, true)
	rotate(t, s, you, room)
	echoes(t, you, room, "hello")
	b.stop()
	var want []string
	for i := range n {
		text := fmt.Sprint("number ", i)
		say(t, you, room, text)
		s.SendToDevice(poison, b.UserID(), "m.room.encrypted", map[string]any{"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "x", "ciphertext": map[string]any{}})
		want = append(want, "echo: **"+text+"**")
	}
	db := openDB(t, b.dir)
	for i := range n {
		revive := dead(t, db, "crypto_megolm_inbound_session", fmt.Sprintf(`NEW.source_user = '%s' AND
			(SELECT count(*) FROM crypto_megolm_inbound_session WHERE source_user = '%[1]s') > %d`, you.UserID(), i))
		b = startWith(t, b.server, b.dir, echo, stumble, you.UserID())
		b.died(s, db)
		if !strings.Contains(b.log.String(), "a fault for a test") && i > 0 {
			t.Error("the library did not stumble")
		}
		revive()
	}
	startWith(t, b.server, b.dir, echo, stumble, you.UserID())
	hears(t, you, room, want...)
}

// mautrix panics over a room key after decrypting its Olm message: later keys of the same Olm session are
// stored, now and after a restart.
func TestPanicAfterDecryption(t *testing.T) {
	t.Parallel()
	stumble := atMessage("matrix library: Failed to store new inbound group session", func(slog.Record) { panic("a fault for a test") })
	s, you, b := meetingWith(t, echo, stumble)
	keyless(s)
	broken, room := metIn(t, s, you, b, true), metIn(t, s, you, b, true)
	db := openDB(t, b.dir)
	execute(t, db, `CREATE TRIGGER broken BEFORE INSERT ON crypto_megolm_inbound_session
		WHEN NEW.source_user = '`+you.UserID()+`' AND NEW.room_id = '`+broken+`' BEGIN SELECT raise(ABORT, 'this key cannot be stored'); END`)
	say(t, you, broken, "nobody can read this")
	b.utd(1)
	expect.Equal(t, strings.Contains(b.log.String(), "a fault for a test"), true, "the library stumbled")
	echoes(t, you, room, "one")
	b.stop()
	rotate(t, s, you, room)
	b = startWith(t, b.server, b.dir, echo, stumble, you.UserID())
	echoes(t, you, room, "two")
	b.utd(1)
}

// The program ends while the disk is full and keys wait to be stored.
func TestShutdownWithFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWritable(t, dir, true)
	keyless(w.s)
	expect.Must(w.db.Exec(`PRAGMA max_page_count = 1`))(t)
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

// rotate gives each message in the room a new megolm session.
func rotate(t *testing.T, s *matrixtest.Server, you *peer.Peer, room string) {
	t.Helper()
	s.SetState(you.UserID(), room, "m.room.encryption", "", content{"algorithm": "m.megolm.v1.aes-sha2", "rotation_period_msgs": 1})
	s.Say(s.Account("ghost", botPassword), room, "the state is there")
	peertest.Next(t, you, func(e peer.Event) bool { return e.Body == "the state is there" })
}
