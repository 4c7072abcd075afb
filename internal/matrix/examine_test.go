package matrix_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/session"
)

// patient examines a bot from outside, as another process does.
type patient struct {
	t      *testing.T
	server *homeserver.Server
	db     *sql.DB
	cfg    matrix.Config
}

func examined(t *testing.T, server *homeserver.Server, dir string) *patient {
	t.Helper()
	db := openDB(t, dir)
	t.Cleanup(func() { _ = db.Close() })
	return &patient{t: t, server: server, db: db, cfg: config(server, dir, db, "@you:"+server.Name)}
}

func (p *patient) exec(query string, args ...any) {
	p.t.Helper()
	if _, err := p.db.ExecContext(p.t.Context(), query, args...); err != nil {
		p.t.Fatal(err)
	}
}

// look returns the status and the findings, one a line: its mark, what, remedy.
func (p *patient) look(running matrix.Process) (matrix.Status, string) {
	p.t.Helper()
	s, found := matrix.Examine(p.t.Context(), p.cfg, running)
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

// says requires that a line of got begins with the mark and contains the words.
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
	nobody  = matrix.Process{}
	sinceAM = func() matrix.Process { return matrix.Process{ID: 42, Since: time.Now().Add(-3 * time.Hour)} }
)

// What the doctor says of when the bot synced, and that it sees the failures
// of a process that is not its own.
func TestExamineSync(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	dir := t.TempDir()
	p := examined(t, server, dir)
	_, got := p.look(nobody)
	says(t, got, "note", "the bot is not running; no sync yet → start it with `bot run`")
	_, got = p.look(sinceAM())
	says(t, got, "ill", "running (process 42), but it is out of contact with the homeserver; no sync yet")
	_, got = p.look(matrix.Process{Since: time.Now().Add(-time.Minute)})
	says(t, got, "note", "not in contact with the homeserver yet")

	b := startWith(t, server, dir, echo, hurry, "@you:"+server.Name)
	await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	st, got := p.look(sinceAM())
	says(t, got, "ok", "the bot is running (process 42); last sync ")
	says(t, got, "ok", "nothing waits")
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
	says(t, got, "note", "failed since, the last one with: M_UPSTREAM")
	if st.Problem == "" {
		t.Errorf("status %+v", st)
	}
	lines := b.Status(t.Context()).Lines(time.Now(), inEnglish)
	if all := strings.Join(lines, "\n"); strings.Contains(all, "M_UPSTREAM") || !strings.Contains(all, "failed since") || !strings.Contains(all, "bot doctor") {
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
	s, server := pretend(t)
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, "@you:"+server.Name)
	await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	p := examined(t, server, dir)
	off := -2*time.Hour - 30*time.Second
	hook := inPlace(t, s, func(*matrixtest.Request) bool { return true }, matrixtest.Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
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

// Messages that wait too long and messages that were given up, with reasons.
func TestExamineQueues(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
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
	says(t, got, "note", "2 messages could not be sent and were given up: M_FORBIDDEN: muted → see that the bot may write")
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
	// A bot that is stopped has nothing to answer for.
	_, got = p.look(nobody)
	says(t, got, "note", "2 messages to answer (the oldest for 11 minutes) → start the bot")
	says(t, got, "note", "2 messages to send (the oldest for 40 minutes): no route → start the bot")
	if strings.Contains(got, "ill: ") {
		t.Errorf("of a bot that was stopped:\n%s", got)
	}
}

// A second device that the bot's identity has not signed, and an identity that
// is not the bot's.
func TestExamineAccount(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	p := examined(t, b.server, b.dir)
	thief, err := peer.Login(t.Context(), peer.Config{Homeserver: s.URL, User: b.UserID(), Password: botPassword, DB: filepath.Join(t.TempDir(), "thief.db")})
	ok(t, err)
	t.Cleanup(func() { _ = thief.Close() })
	st, got := p.look(sinceAM())
	says(t, got, "note", "the account has 1 other device that its identity has not signed: ")
	says(t, got, "note", "→ if you do not know a device, log it out")
	if !st.CrossSigned || !st.IdentityTrusted || len(st.UnknownDevices) != 1 || st.UnknownDevices[0].ID == st.Device {
		t.Errorf("status %+v", st)
	}
	// A signature that is there and is none does not help the device.
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
	ok(t, errors.Join(err, matrix.KeepSecrets(t.Context(), cfg, string(changed)), db.Close()))
	st, got = p.look(nobody)
	says(t, got, "ill", "the account's identity on the homeserver is not the one that this bot made")
	if st.IdentityTrusted {
		t.Errorf("status %+v, want an identity that is not trusted", st)
	}
}

// inEnglish says what people read in a room, as it comes with the program.
func inEnglish(key string, fill ...string) string {
	return (*session.Messages)(nil).In("en", key, fill...)
}
