package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/store"
)

// running is `bot run` against a homeserver in memory, inside of the test.
type running struct {
	t    *testing.T
	s    *matrixtest.Server
	dir  string
	args []string
	mu   sync.Mutex
	out  bytes.Buffer
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

const you, friend, itself = "@you:matrix.test", "@friend:matrix.test", "@reverie:matrix.test"

// withHomeserver writes a configuration for a bot of you.
func withHomeserver(t *testing.T) *running {
	t.Helper()
	r := &running{t: t, s: matrixtest.Start(t)}
	for _, name := range []string{"you", "friend", "reverie"} {
		r.s.Account(name, "a long password")
	}
	config := configFile(t, rehearsing+fmt.Sprintf("matrix: {homeserver: %q, user: %q, password: a long password, owners: [%q], allow: [%q]}\n", r.s.URL, itself, you, friend))
	r.dir, r.args = filepath.Dir(config), []string{"run", "--config", config}
	return r
}

// configure replaces a part of the configuration.
func (r *running) configure(old, new string) {
	r.t.Helper()
	text := readFile(r.t, r.args[2])
	if err := store.WriteFile(r.args[2], []byte(strings.Replace(text, old, new, 1))); err != nil || !strings.Contains(text, old) {
		r.t.Fatalf("%v, without %q: %s", err, old, text)
	}
}

// wrote reports whether the log has text.
func (r *running) wrote(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.out.String(), text)
}

// client logs in as you, with a client that can encrypt.
func (r *running) client() *peer.Peer {
	r.t.Helper()
	p, err := peer.Login(r.t.Context(), peer.Config{Homeserver: r.s.URL, User: you, Password: "a long password", DB: filepath.Join(r.t.TempDir(), "peer.db")})
	must(r.t, err)
	r.t.Cleanup(func() { _ = p.Close() })
	background(r.t, func(ctx context.Context) error { _ = p.Run(ctx); return nil })
	return p
}

// start runs the bot until the end of the test, or until stop.
func (r *running) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	// go: stop ends it and waits for it.
	go func() { code <- start(ctx, r.args, console{in: strings.NewReader(""), out: r, err: r}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if got := <-code; got != 0 || r.t.Failed() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Errorf("bot run: exit %d\n%s", got, r.out.String())
		}
	})
	r.t.Cleanup(stop)
	return stop
}

func (r *running) await(what string, holds func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := r.s.Await(ctx, holds); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// enters has the bot join a room.
func (r *running) enters(by string, q matrixtest.NewRoom) (room string) {
	r.t.Helper()
	q.Invite = append(q.Invite, itself)
	room = r.s.Room(by, q)
	r.await("the bot does not join", func() bool { return r.s.Membership(room, itself) == "join" })
	return room
}

func (r *running) meetDirect() (room string) {
	r.t.Helper()
	return r.enters(you, matrixtest.NewRoom{Direct: true})
}

// told has user say something, and waits until the bot says something in that room.
func (r *running) told(user, room, text string) (event string) {
	r.t.Helper()
	before := r.said(room)
	event = r.s.Say(user, room, text)
	r.await("no answer to "+text, func() bool { return r.said(room) > before })
	return event
}

// said counts what the bot has said in a room.
func (r *running) said(room string) (n int) {
	for _, send := range r.s.Sends() {
		if send.User == itself && send.Room == room && !send.Repeat {
			n++
		}
	}
	return n
}

// A second process on the same data folder is refused before it speaks to the
// homeserver, and the first one goes on.
// Holds F28.
func TestSecondRun(t *testing.T) {
	r := withHomeserver(t)
	r.start()
	room := r.meetDirect()
	r.told(you, room, "hello")
	logins, keys := r.s.Count("login"), r.s.Count("keys_upload")
	for _, args := range [][]string{r.args, {"chat", "--config", r.args[2]}} {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // one that is not refused goes on and on
		defer cancel()
		if code := start(ctx, args, console{in: strings.NewReader("hello\n"), out: &out, err: &out}); code != exitFailed || !strings.Contains(out.String(), "another process") {
			t.Errorf("%s: exit %d, %q", args[0], code, out.String())
		}
	}
	if l, k := r.s.Count("login")-logins, r.s.Count("keys_upload")-keys; l != 0 || k != 0 {
		t.Errorf("the second process logged in %d times and uploaded keys %d times", l, k)
	}
	r.told(you, room, "still there?")
}

// mostCommits is how many transactions a message with its answer takes:
// the sync that brings it, what is heard, what is asked, what is answered, what became of
// the sending, and the sync that shows the answer.
const mostCommits = 6

// Every commit waits for the disk, and all rooms write one after the other. More than these
// is a promise that is kept twice.
func TestCommitsOfAnAnswer(t *testing.T) {
	r, _ := withEditing(t)
	room := r.direct()
	least := 1 << 20
	for i := range 8 { // the least of them: what the program does besides counts too
		before, log := r.commits()
		asked := r.s.Say(you, room, fmt.Sprintf("hello #word%d", i))
		r.until("no answer that is known everywhere", func() bool {
			return r.count(`SELECT count(*) FROM outbox AS o JOIN matrix_room AS m ON m.id = o.room JOIN inbox AS i ON i.id = o.reply_to
				WHERE o.reply_to = ? AND o.state = 'sent' AND m.last_event = o.event_id AND i.state = 'done'`, asked) == 1
		})
		after, same := r.commits()
		if log == same {
			least = min(least, after-before)
		}
	}
	t.Logf("%d commits", least)
	if least > mostCommits || least < 3 {
		t.Errorf("a message and its answer take %d commits, want at most %d", least, mostCommits)
	}
}

// commits counts the transactions in the log of the bot's database, and returns which log
// that is: SQLite begins another one when what was written is in the database.
func (r *running) commits() (n int, log uint64) {
	r.t.Helper()
	wal, err := os.ReadFile(filepath.Join(r.dir, "data", "bot.db-wal"))
	if err != nil || len(wal) < 32 {
		r.t.Fatalf("%d bytes, %v", len(wal), err)
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	log = binary.BigEndian.Uint64(wal[16:])
	for frame := wal[32:]; len(frame) >= 24+page; frame = frame[24+page:] {
		if binary.BigEndian.Uint64(frame[8:]) != log {
			break // of the log before
		}
		if binary.BigEndian.Uint32(frame[4:]) > 0 { // the last frame of a transaction says how large the database is
			n++
		}
	}
	return n, log
}
