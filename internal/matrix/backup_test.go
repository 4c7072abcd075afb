package matrix_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/peer/peertest"
)

// backedUp waits until every key of the bot is in the backup.
func backedUp(t *testing.T, b *bot) matrix.Status {
	t.Helper()
	return b.becomes("not backed up", func(s matrix.Status) bool { return s.Backup != "" && s.BackupWaiting == 0 && s.BackupProblem == "" })
}

// copyFile copies a file of the bot's matrix folder to another data folder.
func copyFile(t *testing.T, from, to, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, "matrix", name))
	ok(t, err)
	ok(t, os.MkdirAll(filepath.Join(to, "matrix"), 0o700))
	ok(t, os.WriteFile(filepath.Join(to, "matrix", name), data, 0o600))
}

// same checks that a file of the bot's matrix folder is as it was.
func same(t *testing.T, one, other, name string) {
	t.Helper()
	a, err := os.ReadFile(filepath.Join(one, "matrix", name))
	ok(t, err)
	b, err := os.ReadFile(filepath.Join(other, "matrix", name))
	ok(t, err)
	if string(a) != string(b) {
		t.Errorf("%s was changed", name)
	}
}

// onServerBackup asks the homeserver for the whole backup.
func onServerBackup(t *testing.T, server *homeserver.Server, token, version string) (sessions int, raw string) {
	t.Helper()
	var all struct {
		Rooms map[string]struct {
			Sessions map[string]json.RawMessage `json:"sessions"`
		} `json:"rooms"`
	}
	call(t, server, http.MethodGet, "room_keys/keys?version="+version, token, nil, &all)
	for _, r := range all.Rooms {
		for _, s := range r.Sessions {
			sessions++
			raw += string(s)
		}
	}
	return sessions, raw
}

// A data folder is lost, all but the recovery key: the account comes back as a
// new device that is cross-signed and reads what was said before.
func TestBackupBringsOldMessagesToANewDevice(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	first := start(t, server, t.TempDir(), echo, you.UserID())
	room := directChat(t, you, first)
	old := say(t, you, room, "the key lies under the mat")
	first.next()
	answer := peertest.Next(t, you, messageIn(room))
	before := backedUp(t, first)
	sessions, raw := onServerBackup(t, server, first.account().AccessToken, before.Backup)
	if sessions != 2 || strings.Contains(raw, "session_key") {
		t.Errorf("%d keys in the backup, want yours and the bot's own, sealed: %s", sessions, raw)
	}
	first.stop()

	dir := t.TempDir()
	copyFile(t, first.dir, dir, "recovery.key")
	second := start(t, server, dir, echo, you.UserID())
	after := backedUp(t, second)
	if after.Device == before.Device || !after.CrossSigned || after.Backup != before.Backup {
		t.Errorf("before %+v, after %+v; want a new device, cross-signed, with the same backup", before, after)
	}
	for end := time.Now().Add(peertest.Patience); !second.logged("restored from the backup", "keys=2"); {
		if time.Now().After(end) {
			t.Fatal("nothing restored")
		}
		time.Sleep(100 * time.Millisecond)
	}
	for event, want := range map[string]string{old: "the key lies under the mat", answer.ID: "echo: **the key lies under the mat**"} {
		if got, err := second.ReadMessage(t.Context(), room, event); err != nil || got != want {
			t.Errorf("%s reads %q, %v; want %q", event, got, err, want)
		}
	}
	converse(t, you, second, room, "and still there")
	for _, f := range check(t, second) {
		if !f.OK {
			t.Errorf("check: %+v", f)
		}
	}

	second.stop()

	// bot.db alone is lost. The way out that the error names ends well.
	dir = t.TempDir()
	for _, name := range []string{"account.json", "pickle.key", "recovery.key"} {
		copyFile(t, second.dir, dir, name)
	}
	db := openDB(t, dir)
	if _, err := matrix.Open(t.Context(), config(server, dir, db, you.UserID())); err == nil || !strings.Contains(err.Error(), "account.json away") {
		t.Errorf("without bot.db: %v", err)
	}
	ok(t, db.Close())
	for _, name := range []string{"pickle.key", "recovery.key"} {
		if same(t, second.dir, dir, name); t.Failed() {
			t.FailNow()
		}
	}
	ok(t, os.Remove(filepath.Join(dir, "bot.db")))
	ok(t, os.Rename(filepath.Join(dir, "matrix", "account.json"), filepath.Join(dir, "matrix", "account.json.old")))
	third := start(t, server, dir, echo, you.UserID())
	for end := time.Now().Add(peertest.Patience); !third.logged("restored from the backup", "unusable=0"); {
		if time.Now().After(end) {
			t.Fatal("nothing restored")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got, err := third.ReadMessage(t.Context(), room, old); err != nil || got != "the key lies under the mat" {
		t.Errorf("reads %q, %v", got, err)
	}
	if s := backedUp(t, third); !s.CrossSigned || s.Device == after.Device || s.Backup != before.Backup {
		t.Errorf("after bot.db was lost: %+v", s)
	}

	// Without the recovery key there is a new device, and no way in.
	blind := start(t, server, t.TempDir(), echo, you.UserID())
	if _, err := blind.ReadMessage(t.Context(), room, old); err == nil {
		t.Error("old messages can be read without the recovery key")
	}
	if s := blind.Status(t.Context()); s.CrossSigned || s.Backup != "" || s.BackupProblem == "" {
		t.Errorf("without the recovery key: %+v", s)
	}
}

// Keys that could not be uploaded go up later, also after a restart.
func TestBackupIsMadeUpFor(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	net.set(func(w http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter)) bool {
		if !strings.Contains(r.URL.Path, "/room_keys/") {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	dir := t.TempDir()
	b := start(t, through, dir, echo, you.UserID())
	room := directChat(t, you, b)
	converse(t, you, b, room, "no backup, and yet an answer")
	if s := b.Status(t.Context()); s.Backup != "" || s.BackupProblem == "" || s.BackupWaiting != 2 {
		t.Errorf("with the backup down: %+v", s)
	}
	found := false
	for _, f := range check(t, b) {
		found = found || !f.OK && strings.Contains(f.What, "not backed up")
	}
	if !found {
		t.Error("the check does not tell")
	}
	b.stop()

	// The recovery key was put into a safe: what the bot kept is enough.
	db := openDB(t, dir)
	_, err := db.ExecContext(t.Context(), `DELETE FROM crypto_secrets`)
	ok(t, errors.Join(err, db.Close()))
	net.set(nil)
	b = start(t, through, dir, echo, you.UserID())
	s := backedUp(t, b)
	b.stop()
	ok(t, os.Rename(filepath.Join(dir, "matrix", "recovery.key"), filepath.Join(t.TempDir(), "safe")))
	b = start(t, through, dir, echo, you.UserID())
	other := directChat(t, you, b)
	converse(t, you, b, other, "a room with keys of its own")
	backedUp(t, b)
	if n, _ := onServerBackup(t, server, b.account().AccessToken, s.Backup); n != 4 {
		t.Errorf("%d keys in the backup, want 4", n)
	}
}

// TestSecretsLost: the recovery key brings back the secrets that the crypto store has lost.
func TestSecretsLost(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	before := backedUp(t, b)
	b.stop()
	p := examined(t, server, dir)
	for _, damaged := range []string{"", "{"} {
		ok(t, matrix.KeepSecrets(t.Context(), p.cfg, damaged))
		b = b.again(echo)
		after := backedUp(t, b)
		b.stop()
		if st, _ := p.look(nobody); after.Backup != before.Backup || !st.IdentityTrusted {
			t.Errorf("with %q in the store: %+v, %+v", damaged, after, st)
		}
	}
}

// Somebody deletes the backup on the server: it is made again, complete.
func TestBackupDeletedOnTheServer(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	b := start(t, server, t.TempDir(), echo, you.UserID())
	room := directChat(t, you, b)
	converse(t, you, b, room, "one")
	before := backedUp(t, b)
	call(t, server, http.MethodDelete, "room_keys/version/"+before.Backup, b.account().AccessToken, nil, nil)
	other := directChat(t, you, b)
	converse(t, you, b, other, "two")
	b.becomes("no new backup", func(s matrix.Status) bool { return s.Backup != before.Backup && s.Backup != "" })
	backedUp(t, b)
	if n, _ := onServerBackup(t, server, b.account().AccessToken, b.Status(t.Context()).Backup); n != 4 {
		t.Errorf("%d keys in the new backup, want 4", n)
	}
}

// The doctor tells the keys by which others recognise the bot, beside the running bot.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	b := start(t, server, t.TempDir(), echo, "@you:"+server.Name)
	s := backedUp(t, b)
	var keys struct {
		DeviceKeys map[string]map[string]struct {
			Keys map[string]string `json:"keys"`
		} `json:"device_keys"`
		MasterKeys map[string]struct {
			Keys map[string]string `json:"keys"`
		} `json:"master_keys"`
	}
	call(t, server, http.MethodPost, "keys/query", b.account().AccessToken, map[string]any{"device_keys": map[string]any{s.User: []string{}}}, &keys)
	_, got := examined(t, server, b.dir).look(sinceAM())
	device := matrix.Fingerprint(keys.DeviceKeys[s.User][s.Device].Keys["ed25519:"+s.Device])
	for _, master := range keys.MasterKeys[s.User].Keys {
		if len(device) != 53 || device == matrix.Fingerprint(master) {
			t.Errorf("the homeserver tells %q and %q", device, master)
		}
		says(t, got, "ok", "the device's fingerprint is "+device+", the identity's "+matrix.Fingerprint(master))
	}
}
