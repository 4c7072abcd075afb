package matrix_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
	"reverie/internal/store/storetest"
)

// ending opens and runs the bot in dir and returns the error it ends with.
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
	err = c.Run(ctx, func(ctx context.Context, in session.Inbound) error { return c.Handled(ctx, in.ID) })
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

// copyDB copies the database of a bot that is stopped.
func copyDB(t *testing.T, from, to string) {
	t.Helper()
	db := openDB(t, from)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `VACUUM INTO ?`, to); err != nil {
		t.Fatal(err)
	}
}

func restoreDB(t *testing.T, dir, from string) {
	t.Helper()
	for _, name := range []string{"bot.db", "bot.db-wal", "bot.db-shm"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	data, err := os.ReadFile(from)
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "bot.db"), data, 0o600))
}

// rows counts the rows of a table in the bot's database.
func rows(t *testing.T, dir, table string) (n int) {
	t.Helper()
	db := openDB(t, dir)
	defer db.Close()
	ok(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n))
	return n
}

// bot.db is put back from an older copy: one-time keys are made again that the
// homeserver knows already with other contents. The bot notices, stops with a
// reason after a few requests, deletes nothing, and the next start is a new,
// verified device that can be talked to.
// Holds F27.
func TestOldCopyOfTheKeys(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old.db")
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	b.stop()
	copyDB(t, dir, old)
	claim(t, server, b.UserID(), device, 20)
	b = startWith(t, server, dir, echo, hurry, you.UserID()) // uploads new ones in their place
	converse(t, you, b, room, "two")
	await(t, s, "no new keys were uploaded", func() bool { return s.OneTimeKeys(b.UserID(), device) >= 50 })
	b.stop()
	restoreDB(t, dir, old)
	claim(t, server, b.UserID(), device, 20)

	olm, megolm := rows(t, dir, "crypto_olm_session"), rows(t, dir, "crypto_megolm_inbound_session")
	uploads := s.Count("keys_upload")
	wants(t, ending(t, server, dir, func(cfg *matrix.Config) { cfg.Password, cfg.Token = "", b.account().token(t) }, you.UserID()), "older copy", "matrix.password")
	wants(t, ending(t, server, dir, nil, you.UserID()), "older copy", "nothing is deleted", "recovery.key", device)
	if n := s.Count("keys_upload") - uploads; n > 10 {
		t.Errorf("%d uploads were tried", n)
	}
	if n := rows(t, dir, "crypto_olm_session"); n != olm {
		t.Errorf("%d Olm sessions are left of %d", n, olm)
	}
	if n := rows(t, dir, "crypto_megolm_inbound_session"); n < megolm {
		t.Errorf("%d Megolm sessions are left of %d", n, megolm)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "matrix", "account.json.*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the old login is kept as %q, %v", kept, err)
	}

	b = startWith(t, server, dir, echo, hurry, you.UserID())
	if st := b.Status(t.Context()); st.Device == device || !st.CrossSigned {
		t.Errorf("status %+v, want a new, cross-signed device", st)
	}
	await(t, s, "first sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	converse(t, you, b, room, "three")
	b = b.again(echo)
	converse(t, you, b, room, "four")
}

// claim takes one-time keys of a device, as somebody does who begins to talk to it.
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

// bot.db and the homeserver have different keys of the same device. The advice,
// to move account.json away, leads to a new device.
// Holds F25.
func TestKeysOfAnotherDevice(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old.db")
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	b.stop()
	copyDB(t, dir, old)
	// The same device with new keys: everything was lost and deleted once.
	s.DeleteDevices(b.UserID())
	for _, name := range []string{"bot.db", "bot.db-wal", "bot.db-shm"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	startWith(t, server, dir, echo, hurry, you.UserID()).stop()
	if now := b.account().DeviceID; now != device {
		t.Fatalf("device %s became %s", device, now)
	}
	restoreDB(t, dir, old)
	before := rows(t, dir, "crypto_olm_session")
	wants(t, ending(t, server, dir, nil, you.UserID()), device, "account.json away", "recovery.key")
	wants(t, ending(t, server, dir, nil, you.UserID()), device, "account.json away")
	ok(t, os.Rename(filepath.Join(dir, "matrix/account.json"), filepath.Join(dir, "away")))
	b = b.again(echo)
	if st := b.Status(t.Context()); st.Device == device || !st.CrossSigned {
		t.Errorf("status %+v, want a new, cross-signed device", st)
	}
	await(t, s, "first sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	converse(t, you, b, room, "two")
	b.stop()
	if n := rows(t, dir, "crypto_olm_session"); n < before {
		t.Errorf("%d Olm sessions are left of %d", n, before)
	}
}

// What is damaged is said, and nothing is touched: with the right file in its
// place again, the bot goes on as the same device.
// Holds F25.
func TestDamagedKeys(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir, good := t.TempDir(), filepath.Join(t.TempDir(), "good.db")
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	b.stop()
	copyDB(t, dir, good)
	change := func(query string) func() {
		return func() {
			t.Helper()
			db := openDB(t, dir)
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		damage func()
		words  []string
	}{
		{"the device's keys are lost", change(`DELETE FROM crypto_account`), []string{"account.json away"}},
		{"the device's keys are garbled", change(`UPDATE crypto_account SET account = CAST('garbage' AS BLOB)`), []string{"pickle.key does not fit"}},
		{"all of it is gone", func() { restoreDB(t, dir, os.DevNull) }, []string{"account.json away"}},
		{"it is no database", func() { restoreDB(t, dir, filepath.Join(dir, "matrix/account.json")) }, []string{"bot.db"}},
		{"it is cut off", func() {
			ok(t, os.Truncate(filepath.Join(dir, "bot.db"), 8192))
		}, []string{"bot.db"}},
		{"the wrong pickle key", func() {
			ok(t, os.WriteFile(filepath.Join(dir, "matrix/pickle.key"), []byte(strings.Repeat("k", 32)), 0o600))
		}, []string{"pickle.key does not fit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := os.ReadFile(filepath.Join(dir, "matrix/pickle.key"))
			ok(t, err)
			restoreDB(t, dir, good)
			c.damage()
			files := contents(t, filepath.Join(dir, "matrix"))
			for range 2 { // the first try must not have changed anything
				wants(t, tryOpen(t, server, dir, you.UserID()), c.words...)
			}
			if now := contents(t, filepath.Join(dir, "matrix")); now != files {
				t.Errorf("the files became\n%s\nfrom\n%s", now, files)
			}
			restoreDB(t, dir, good)
			ok(t, os.WriteFile(filepath.Join(dir, "matrix/pickle.key"), key, 0o600))
			if err := tryOpen(t, server, dir, you.UserID()); err != nil {
				t.Errorf("with the right file in its place: %v", err)
			}
		})
	}
	b = b.again(echo)
	if now := b.account().DeviceID; now != device {
		t.Errorf("device %s became %s", device, now)
	}
	converse(t, you, b, room, "two")
}

// tryOpen opens the database and the client as the program does.
func tryOpen(t *testing.T, server *homeserver.Server, dir, owner string) error {
	t.Helper()
	db, err := storetest.Open(t, filepath.Join(dir, "bot.db"))
	if err != nil {
		return err
	}
	defer func(db *sql.DB) { err = errors.Join(err, db.Close()) }(db)
	_, err = matrix.Open(t.Context(), config(server, dir, db, owner))
	return err
}

// contents lists the files of a folder with what is in them.
func contents(t *testing.T, dir string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		ok(t, err)
		all += fmt.Sprintf("%s: %q\n", e.Name(), data)
	}
	return all
}
