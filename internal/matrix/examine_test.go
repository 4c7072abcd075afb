package matrix_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/matrix/verification"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// patient is a bot that is examined from another process.
type patient struct {
	t      *testing.T
	server *homeserver.Server
	db     *store.DB
	cfg    matrix.Config
}

func examined(t *testing.T, server *homeserver.Server, dir string) *patient {
	t.Helper()
	db := openDB(t, dir)
	return &patient{t: t, server: server, db: db, cfg: config(server, dir, db, "@you:"+server.Name)}
}

func (p *patient) exec(query string, args ...any) {
	p.t.Helper()
	execute(p.t, p.db, query, args...)
}

// look returns the status and the findings, one per line: mark, what, remedy.
func (p *patient) look(running doctor.Process) (doctor.Status, string) {
	p.t.Helper()
	s, found := matrix.ExamineAccount(p.t.Context(), p.cfg, running)
	out := ""
	for _, f := range found {
		mark := "ill"
		switch {
		case f.OK && f.Note:
			mark = "note"
		case f.OK:
			mark = "ok"
		}
		if (f.Remedy == "") != (mark == "ok") {
			p.t.Errorf("%+v: a remedy belongs to everything that is not simply well", f)
		}
		out += fmt.Sprintf("%s: %s → %s\n", mark, f.What, f.Remedy)
	}
	return s, out
}

// says checks that a line of got begins with the mark and contains the words.
func says(t *testing.T, got, mark, words string) {
	t.Helper()
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, mark+": ") && strings.Contains(line, words) {
			return
		}
	}
	t.Errorf("want %q: %q, got\n%s", mark, words, got)
}

var (
	nobody  = doctor.Process{}
	sinceAM = func() doctor.Process { return doctor.Process{ID: 42, Since: time.Now().Add(-3 * time.Hour)} }
)

// The doctor reports the last sync, and the sync failures of another process.
func TestExamineSync(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	dir := t.TempDir()
	p := examined(t, server, dir)
	_, got := p.look(nobody)
	says(t, got, "note", "the bot is not running; no sync yet → start it with `bot run`")
	_, got = p.look(sinceAM())
	says(t, got, "ill", "running (process 42), but it is out of contact with the homeserver; no sync yet")
	_, got = p.look(doctor.Process{Since: time.Now().Add(-time.Minute)})
	says(t, got, "note", "not in contact with the homeserver yet")
	b := startWith(t, server, dir, echo, hurry, "@you:"+server.Name)
	await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	st, got := p.look(sinceAM())
	says(t, got, "ok", "the bot is running (process 42); last sync ")
	says(t, got, "ok", "nothing is waiting")
	if strings.Contains(got, "ill: ") || strings.Contains(got, "note: ") {
		t.Errorf("of a bot that is well:\n%s", got)
	}
	if !st.Running || !st.CrossSigned || !st.IdentityTrusted || !st.RecoveryKey || len(st.UnknownDevices) != 0 || st.Backup == "" ||
		st.LastSyncAge == nil || *st.LastSyncAge > 60 || st.ClockSkew == nil || st.SyncFailures != 0 || st.Device == "" {
		t.Errorf("status %+v", st)
	}
	down := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Status(http.StatusBadGateway, "M_UPSTREAM"))
	await(t, s, "the failures are not noted", func() bool { st, _ := p.look(sinceAM()); return st.SyncFailures > 1 })
	st, got = p.look(sinceAM())
	says(t, got, "note", "since then, the last one with: M_UPSTREAM")
	if st.Problem == "" {
		t.Errorf("status %+v", st)
	}
	lines := b.Status(t.Context()).Lines(time.Now(), inEnglish)
	if all := strings.Join(lines, "\n"); strings.Contains(all, "M_UPSTREAM") || !strings.Contains(all, "failed attempts since then") || !strings.Contains(all, "bot doctor") {
		t.Errorf("in the chat:\n%s", all)
	}
	p.exec(`UPDATE matrix_sync SET at = at - 20*60*1000`)
	_, got = p.look(sinceAM())
	says(t, got, "ill", "last sync 20 minutes ago; ")
	down.Remove()
	await(t, s, "the failures are not forgotten", func() bool { st, _ := p.look(sinceAM()); return st.SyncFailures == 0 && st.Problem == "" })
	b.stop()
	p.exec(`UPDATE matrix_sync SET at = at - 3*3600*1000`)
	_, got = p.look(nobody)
	says(t, got, "note", "the bot is not running; last sync 3 hours ago → start it")
}

// Faults 1 and 17: the homeserver is down, a clock is wrong.
// Holds F1, F17.
func TestExamineHomeserver(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, "@you:"+server.Name)
	await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	p := examined(t, server, dir)
	off := -2*time.Hour - 30*time.Second
	hook := inPlace(t, s, func(*matrixtest.Request) bool { return true }, matrixtest.ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) {
		a.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	}))
	st, got := p.look(sinceAM())
	says(t, got, "ill", "the homeserver's clock is 2 hours behind mine → set the clock of this machine or of the homeserver")
	if st.ClockSkew == nil || (time.Duration(*st.ClockSkew)*time.Second-off).Abs() > time.Minute {
		t.Errorf("clock_skew_s %v, want about %v", st.ClockSkew, off)
	}
	await(t, s, "the bot does not see it", func() bool {
		return strings.Contains(strings.Join(b.Status(t.Context()).Lines(time.Now(), inEnglish), "\n"), "bot doctor")
	})
	hook.Remove()
	p.cfg.Homeserver = "http://127.0.0.1:1"
	st, got = p.look(sinceAM())
	says(t, got, "ill", "the homeserver http://127.0.0.1:1 does not answer")
	says(t, got, "ok", "the bot is running (process 42); last sync ")
	if st.ClockSkew != nil || st.Device == "" || !st.CrossSigned || st.LastSync.IsZero() {
		t.Errorf("without a homeserver: %+v; want what was known before, and no clock", st)
	}
}

// Messages that wait too long, and messages that were given up, with reasons.
func TestExamineQueues(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, hurry, "@you:"+server.Name)
	await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	b.stop()
	p := examined(t, server, dir)
	at := func(ago time.Duration) int64 { return time.Now().Add(-ago).UnixMilli() }
	p.exec(`INSERT INTO inbox (id, room, sender, sent_at, received_at, state, error) VALUES
		('$a', '!r', '@you', 0, ?, 'new', ''), ('$b', '!r', '@you', 0, ?, 'new', ''), ('$c', '!r', '@you', 0, ?, 'utd', 'no session'), ('$d', '!r', '@you', 0, ?, 'dead', 'panic: a fish')`,
		at(11*time.Minute+time.Second), at(time.Minute), at(50*time.Hour), at(time.Hour))
	p.exec(`INSERT INTO outbox (id, room, state, attempts, error, created_at) VALUES
		('x', '!r', 'pending', 3, 'no route', ?), ('y', '!r', 'pending', 0, '', ?), ('z', '!r', 'dead', 1, 'M_FORBIDDEN: muted', ?), ('w', '!q', 'dead', 1, 'M_FORBIDDEN: muted', ?)`,
		at(40*time.Minute+time.Second), at(time.Minute), at(5*time.Hour), at(9*time.Hour))
	p.exec(`UPDATE matrix_sync SET at = ?`, at(0))
	st, got := p.look(sinceAM())
	says(t, got, "ill", "2 messages to answer (the oldest for 11 minutes) → see above whether the model answers")
	says(t, got, "ill", "2 messages to send (the oldest for 40 minutes): no route → see above whether the homeserver answers")
	says(t, got, "note", "1 message cannot be read yet (the oldest for 2 days) → nothing is lost")
	says(t, got, "note", "given up: panic: a fish → ")
	says(t, got, "note", "2 messages could not be sent and were given up: M_FORBIDDEN: muted → check that the bot may write")
	var doc map[string]any
	raw, err := json.Marshal(st)
	if err != nil || json.Unmarshal(raw, &doc) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for field, want := range map[string]float64{
		"inbox": 2, "inbox_oldest_s": 661, "outbox": 2, "outbox_oldest_s": 2401, "dead": 2, "lost": 1,
		"undecryptable": 1, "undecryptable_oldest_s": 50 * 3600, "sync_failures": 0,
	} {
		if n, ok := doc[field].(float64); !ok || n < want || n > want+60 {
			t.Errorf("%s = %v, want %v", field, doc[field], want)
		}
	}
	// A stopped bot's queues are no fault.
	_, got = p.look(nobody)
	says(t, got, "note", "2 messages to answer (the oldest for 11 minutes) → start the bot")
	says(t, got, "note", "2 messages to send (the oldest for 40 minutes): no route → start the bot")
	if strings.Contains(got, "ill: ") {
		t.Errorf("of a bot that was stopped:\n%s", got)
	}
}

// A second device that the bot's identity has not signed, and an identity that is not the bot's.
func TestExamineAccount(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	p := examined(t, b.server, b.dir)
	thief := expect.Must(peer.Login(t.Context(), peer.Config{Homeserver: s.URL, User: b.UserID(), Password: botPassword, DB: filepath.Join(t.TempDir(), "thief.db")}))(t)
	t.Cleanup(func() { _ = thief.Close() })
	st, got := p.look(sinceAM())
	says(t, got, "note", "the account has 1 other device that its identity has not signed: ")
	says(t, got, "note", "→ if you do not know a device, log it out")
	if !st.CrossSigned || !st.IdentityTrusted || len(st.UnknownDevices) != 1 || st.UnknownDevices[0].ID == st.Device {
		t.Errorf("status %+v", st)
	}
	// An invalid signature does not help the device.
	forged := s.Fault(matrixtest.On("keys_query").By(b.UserID()), rewritten(t, func(body map[string]any) {
		devices := body["device_keys"].(map[string]any)[b.UserID()].(map[string]any)
		devices[st.UnknownDevices[0].ID].(map[string]any)["signatures"] = devices[st.Device].(map[string]any)["signatures"]
	}))
	_, got = p.look(sinceAM())
	says(t, got, "note", "the account has 1 other device that its identity has not signed: ")
	if forged.Hits() == 0 {
		t.Error("nothing was forged")
	}
	forged.Remove()
	b.stop()
	db := openDB(t, b.dir)
	cfg := config(b.server, b.dir, db, you.UserID())
	data, err := matrix.KeptSecrets(t.Context(), cfg)
	var kept map[string]map[string]any
	if err = errors.Join(err, json.Unmarshal([]byte(data), &kept)); err != nil {
		t.Fatal(err)
	}
	kept["cross_signing"]["m.cross_signing.master"] = strings.Repeat("A", 43)
	changed, err := json.Marshal(kept)
	expect.OK(t, errors.Join(err, matrix.KeepSecrets(t.Context(), cfg, string(changed)), db.Close()))
	st, got = p.look(nobody)
	says(t, got, "ill", "the account's identity on the homeserver is not the one that this bot made")
	expect.Equal(t, st.IdentityTrusted, false, "the identity is trusted")
}

// inEnglish returns a message text of the program.
func inEnglish(key string, fill ...string) string {
	return (*settings.Messages)(nil).In("en", key, fill...)
}

// backedUp waits until every key of the bot is in the backup.
func backedUp(t *testing.T, b *bot) doctor.Status {
	t.Helper()
	return b.becomes("not backed up", func(s doctor.Status) bool { return s.Backup != "" && s.BackupWaiting == 0 && s.BackupProblem == "" })
}

// copyFile copies a file of the bot's matrix folder to another data folder.
func copyFile(t *testing.T, from, to, name string) {
	t.Helper()
	data := expect.Must(os.ReadFile(filepath.Join(from, "matrix", name)))(t)
	expect.OK(t, os.MkdirAll(filepath.Join(to, "matrix"), 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(to, "matrix", name), data, 0o600))
}

// same checks that a file of the bot's matrix folder is unchanged.
func same(t *testing.T, one, other, name string) {
	t.Helper()
	a := expect.Must(os.ReadFile(filepath.Join(one, "matrix", name)))(t)
	b := expect.Must(os.ReadFile(filepath.Join(other, "matrix", name)))(t)
	expect.Equal(t, string(a), string(b), "%s was changed", name)
}

// onServerBackup fetches the whole backup from the homeserver.
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

// A data folder is lost except for the recovery key: the account gets a new cross-signed device that can
// read old messages.
func TestBackupBringsOldMessagesToANewDevice(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
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
	unsealed := map[string]any{"first_message_index": 0, "forwarded_count": 0, "is_verified": false, "session_data": map[string]any{}}
	call(t, server, http.MethodPut, "room_keys/keys/"+room+"/nobodys?version="+before.Backup, first.account().AccessToken, unsealed, &struct{}{})
	first.stop()
	dir := t.TempDir()
	copyFile(t, first.dir, dir, "recovery.key")
	second := start(t, server, dir, echo, you.UserID())
	after := backedUp(t, second)
	if after.Device == before.Device || !after.CrossSigned || after.Backup != before.Backup {
		t.Errorf("before %+v, after %+v; want a new device, cross-signed, with the same backup", before, after)
	}
	second.becomes("nothing restored", func(doctor.Status) bool { return second.logged("keys=2 unusable=1") })
	for event, want := range map[string]string{old: "the key lies under the mat", answer.ID: "echo: **the key lies under the mat**"} {
		expect.Equal(t, expect.Must(second.ReadMessage(t.Context(), room, event))(t), want, "%s", event)
	}
	converse(t, you, second, room, "and still there")
	well(t, second)
	backedUp(t, second)
	sessions, _ = onServerBackup(t, server, second.account().AccessToken, before.Backup)
	second.stop()
	// Only bot.db is lost. The advice in the error works.
	dir = t.TempDir()
	for _, name := range []string{"account.json", "pickle.key", "recovery.key"} {
		copyFile(t, second.dir, dir, name)
	}
	db := openDB(t, dir)
	_, err := matrix.Open(t.Context(), config(server, dir, db, you.UserID()))
	wants(t, err, "account.json away")
	expect.OK(t, db.Close())
	for _, name := range []string{"pickle.key", "recovery.key"} {
		if same(t, second.dir, dir, name); t.Failed() {
			t.FailNow()
		}
	}
	expect.OK(t, os.Remove(filepath.Join(dir, "bot.db")))
	expect.OK(t, os.Rename(filepath.Join(dir, "matrix", "account.json"), filepath.Join(dir, "matrix", "account.json.old")))
	third := start(t, server, dir, echo, you.UserID())
	restored := fmt.Sprintf("keys=%d unusable=1", sessions-1)
	third.becomes("nothing restored", func(doctor.Status) bool { return third.logged(restored) })
	expect.Equal(t, expect.Must(third.ReadMessage(t.Context(), room, old))(t), "the key lies under the mat", "the old message")
	if s := backedUp(t, third); !s.CrossSigned || s.Device == after.Device || s.Backup != before.Backup {
		t.Errorf("after bot.db was lost: %+v", s)
	}
	// Without the recovery key there is a new device without the old keys.
	blind := start(t, server, t.TempDir(), echo, you.UserID())
	if _, err := blind.ReadMessage(t.Context(), room, old); err == nil {
		t.Error("old messages can be read without the recovery key")
	}
	if s := blind.Status(t.Context()); s.CrossSigned || s.Backup != "" || s.BackupProblem == "" {
		t.Errorf("without the recovery key: %+v", s)
	}
}

// Keys whose upload failed are uploaded later, also after a restart.
func TestBackupCatchesUp(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
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
	expect.Equal(t, found, true, "the check tells")
	b.stop()
	// recovery.key was moved away: the stored secrets are enough.
	db := openDB(t, dir)
	_, err := db.ExecContext(t.Context(), `DELETE FROM crypto_secrets`)
	expect.OK(t, errors.Join(err, db.Close()))
	net.set(nil)
	b = start(t, through, dir, echo, you.UserID())
	s := backedUp(t, b)
	b.stop()
	expect.OK(t, os.Rename(filepath.Join(dir, "matrix", "recovery.key"), filepath.Join(t.TempDir(), "safe")))
	b = start(t, through, dir, echo, you.UserID())
	other := directChat(t, you, b)
	converse(t, you, b, other, "a room with keys of its own")
	backedUp(t, b)
	if n, _ := onServerBackup(t, server, b.account().AccessToken, s.Backup); n != 4 {
		t.Errorf("%d keys in the backup, want 4", n)
	}
}

// TestSecretsLost: the recovery key restores lost secrets of the crypto store.
func TestSecretsLost(t *testing.T) {
	t.Parallel()
	_, _, b := meeting(t, echo)
	before := backedUp(t, b)
	b.stop()
	p := examined(t, b.server, b.dir)
	for _, damaged := range []string{"", "{"} {
		expect.OK(t, matrix.KeepSecrets(t.Context(), p.cfg, damaged))
		b = b.again(echo)
		after := backedUp(t, b)
		b.stop()
		if st, _ := p.look(nobody); after.Backup != before.Backup || !st.IdentityTrusted {
			t.Errorf("with %q in the store: %+v, %+v", damaged, after, st)
		}
	}
}

// The backup is deleted on the server: a complete new one is made.
func TestBackupDeletedOnTheServer(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	b := start(t, server, t.TempDir(), echo, you.UserID())
	room := directChat(t, you, b)
	converse(t, you, b, room, "one")
	before := backedUp(t, b)
	call(t, server, http.MethodDelete, "room_keys/version/"+before.Backup, b.account().AccessToken, nil, nil)
	other := directChat(t, you, b)
	converse(t, you, b, other, "two")
	b.becomes("no new backup", func(s doctor.Status) bool { return s.Backup != before.Backup && s.Backup != "" })
	backedUp(t, b)
	if n, _ := onServerBackup(t, server, b.account().AccessToken, b.Status(t.Context()).Backup); n != 4 {
		t.Errorf("%d keys in the new backup, want 4", n)
	}
}

// The doctor reports the fingerprints of a running bot.
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
	device := verification.Fingerprint(keys.DeviceKeys[s.User][s.Device].Keys["ed25519:"+s.Device])
	for _, master := range keys.MasterKeys[s.User].Keys {
		if len(device) != 53 || device == verification.Fingerprint(master) {
			t.Errorf("the homeserver tells %q and %q", device, master)
		}
		says(t, got, "ok", "the device's fingerprint is "+device+", the identity's "+verification.Fingerprint(master))
	}
}
