package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// running is `bot run` with an in-memory homeserver, inside of the test.
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
	p := expect.Must(peer.Login(r.t.Context(), peer.Config{Homeserver: r.s.URL, User: you, Password: "a long password", DB: filepath.Join(r.t.TempDir(), "peer.db")}))(r.t)
	r.t.Cleanup(func() { _ = p.Close() })
	background(r.t, func(ctx context.Context) error { _ = p.Run(ctx); return nil })
	return p
}

// start runs the bot until the end of the test, or until stop.
func (r *running) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	// go: stop ends it and waits for it.
	go func() { code <- execute(ctx, r.args, console{in: strings.NewReader(""), out: r, err: r}) }()
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

// told sends text as user and waits for the bot's reply in the room.
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

// A second process on the same data folder is refused before it connects, and the first continues.
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
		if code := execute(ctx, args, console{in: strings.NewReader("hello\n"), out: &out, err: &out}); code != exitFailed || !strings.Contains(out.String(), "another process") {
			t.Errorf("%s: exit %d, %q", args[0], code, out.String())
		}
	}
	if l, k := r.s.Count("login")-logins, r.s.Count("keys_upload")-keys; l != 0 || k != 0 {
		t.Errorf("the second process logged in %d times and uploaded keys %d times", l, k)
	}
	r.told(you, room, "still there?")
}

// mostCommits is the number of transactions of a message and its answer: the sync, the history, the
// request, the answer, the sending, and the sync with the echo.
const mostCommits = 6

// Every commit waits for the disk and blocks other rooms, so more than these are a fault.
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

// commits counts the transactions in the database's WAL and returns the salt of the WAL, which
// changes when it is reset.
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

// A message redacted while its answer streams: the request ends at once, and the answer is deleted everywhere.
// Holds F33, M5.
func TestRedactedWhileAnswering(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	asked := r.s.Say(you, room, "slow #apple")
	r.showing(room, "answer 1 to #apple")
	r.redact(you, room, asked)
	r.until("the request is not given up", func() bool { return m.givenUp() == 1 })
	r.settles(room)
	r.s.Say(you, room, "and #fig")
	r.settles(room, "to #fig")
	m.made(t, 2)
	m.assertNotSent(t, "#apple")
	r.forgot("#apple")
}

// A message redacted while it waits is not answered; the others are.
// Holds F33, M5.
func TestRedactedWhileWaiting(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	r.s.Say(you, room, "slow #apple")
	r.showing(room, "answer 1 to #apple")
	second, third := r.s.Say(you, room, "and #fig"), r.s.Say(you, room, "and #kiwi")
	r.edit(you, room, third, "and #plum")
	r.redact(you, room, second)
	r.until("not taken in", func() bool {
		return r.count(`SELECT count(*) FROM inbox WHERE state = 'redacted' OR text LIKE '%#plum'`) >= 2
	})
	close(m.release)
	r.settles(room, "#apple", "answer 2 to #plum")
	r.forgot("#fig", "#kiwi")
	m.made(t, 2)
}

// Of two messages answered together, one is redacted: the answer is replaced in place without it. When the
// other is redacted too, the answer goes, also after a restart and with failing redactions.
// Holds F33, M6.
func TestRedactedAfterAnswer(t *testing.T) {
	r, m := withEditing(t)
	stop := r.start()
	room := r.meetDirect()
	r.s.Say(you, room, "slow #first")
	r.showing(room, "answer 1 to #first")
	one, two := r.s.Say(you, room, "keep #apple"), r.s.Say(you, room, "keep #fig")
	r.takenIn(room, two)
	close(m.release)
	both := r.settles(room, "#first", "answer")
	r.redact(you, room, one)
	r.until("not answered anew", func() bool { return m.calls() > 3 })
	r.settled()
	now := r.showing(room, "#first", "#fig")
	if n := r.traces("#apple"); n != 0 || now[1].id != both[1].id {
		t.Errorf("the words stand in %d places; %v became %v", n, both, now)
	}
	hook := r.s.Fault(matrixtest.On("redact"), matrixtest.Status(500, "M_UNKNOWN"))
	r.redact(you, room, two)
	r.until("nothing is redacted", func() bool { return hook.Hits() > 0 })
	stop()
	hook.Remove()
	calls := m.calls()
	r.start()
	r.settles(room, "#first")
	r.forgot("#fig")
	m.made(t, calls)
}

// Memories from a redacted message are deleted, unless another message said the same.
// Holds M7.
func TestRedactedIsForgotten(t *testing.T) {
	r, _ := withEditing(t)
	room := r.direct()
	one := r.s.Say(you, room, "!remember the code is #apple")
	r.showing(room, "Remembered")
	two := r.s.Say(you, room, "!remember the key is #fig")
	r.showing(room, "Remembered", "Remembered")
	r.s.Say(you, room, "!remember the key is #fig")
	r.settles(room, "Remembered", "Remembered", "I already know that")
	r.redact(you, room, one)
	r.redact(you, room, two)
	r.settles(room, "I already know that")
	expect.Equal(t, r.count(`SELECT count(*) FROM memory WHERE state = 'active' AND text LIKE '%#fig%'`), 1, "entries of what was said twice")
	expect.Equal(t, r.count(`SELECT count(*) FROM memory WHERE text LIKE '%#apple%' OR event = ?`, two), 0, "entries of what was taken back")
}

// An answer redacted by a person leaves the history and is not given again.
func TestRedactedAnswer(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	asked := r.s.Say(you, room, "tell me of #apple")
	was := r.settles(room, "answer 1 to #apple")
	r.redact(friend, room, was[0].id) // the homeserver has seen to it that they may
	r.until("still in the history", func() bool { return r.count(`SELECT count(*) FROM message WHERE text LIKE 'answer 1%'`) == 0 })
	r.settled()
	m.made(t, 1)
	r.react(you, room, asked, "🔁") // a new one is a new event
	r.until("not answered anew", func() bool { return len(r.shown(room)) == 2 })
	if now := r.shown(room); !strings.Contains(now[1].body, "answer 2 to #apple") {
		t.Errorf("shown: %v", now)
	}
}

// ❌ on a draft or question by the asker or an owner stops the answer, and 🔁 replaces it. Other
// people and reactions have no effect.
// Holds M11, M12.
func TestReactions(t *testing.T) {
	r, m := withEditing(t)
	r.start()
	room := r.meetDirect()
	asked := r.s.Say(you, room, "slow #apple")
	draft := r.showing(room, "answer 1 to #apple")
	r.react(friend, room, draft[0].id, "❌")
	r.react(you, room, draft[0].id, "👍")
	r.react(you, room, draft[0].id, "✖️")
	r.until("the request is not given up", func() bool { return m.givenUp() == 1 })
	r.settles(room, "I stopped working on this")
	r.react(friend, room, asked, "🔁")
	r.react(you, room, asked, "🔄")
	r.showing(room, "I stopped working") // a message that was final is not streamed into
	r.until("not answered anew", func() bool { return m.calls() == 2 })
	r.react(you, room, asked, "🛑")
	r.until("the request is not given up", func() bool { return m.givenUp() == 2 })
	r.settled()
	close(m.release)
	r.react(you, room, draft[0].id, "🔁")
	now := r.settles(room, "answer 3 to #apple")
	if now[0].id != draft[0].id || m.calls() != 3 {
		t.Errorf("%v became %v after %d requests", draft, now, m.calls())
	}
	r.react(you, room, "$nobody", "🔁")
	r.s.Say(you, room, "!retry")
	r.showing(room, "answer 3 to #apple", "answer 4 to #apple")
}

// In a group, only the asker and owners may stop an answer.
// Holds M11, M17.
func TestReactionsInAGroup(t *testing.T) {
	r, m := withEditing(t)
	r.start()
	room := r.enters(you, matrixtest.NewRoom{Join: []string{friend}})
	mention := func(user, text string) string {
		return r.s.Post(user, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{"user_ids": []string{itself}}})
	}
	asked := mention(you, "slow #apple")
	r.until("not asked", func() bool { return m.calls() == 1 })
	r.react(friend, room, asked, "❌")
	theirs := mention(friend, "slow #fig")
	r.until("not taken in", func() bool { return r.count(`SELECT count(*) FROM inbox WHERE id = ?`, theirs) == 1 })
	expect.Equal(t, m.givenUp(), 0, "somebody else may stop it")
	r.react(you, room, asked, "❌")
	r.until("the request is not given up", func() bool { return m.givenUp() == 1 })
	r.until("not asked", func() bool { return m.calls() == 2 })
	r.react(you, room, theirs, "❌") // an owner
	r.until("the request is not given up", func() bool { return m.givenUp() == 2 })
	r.showing(room, "I stopped", "I stopped")
	r.s.Post(friend, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": "keep slow #kiwi", "m.mentions": map[string]any{"user_ids": []string{itself}},
		"m.relates_to": map[string]any{"rel_type": "m.thread", "event_id": theirs, "is_falling_back": true, "m.in_reply_to": map[string]any{"event_id": theirs}}})
	r.until("no second round", func() bool { return m.calls() == 4 })
	mention(friend, "!stop")
	r.until("the request is not given up", func() bool { return m.givenUp() == 3 })
}

// Invalid edits are ignored.
// Holds F35, M17, M65.
func TestEditsOfOthers(t *testing.T) {
	r, m := withEditing(t)
	r.start()
	room := r.enters(you, matrixtest.NewRoom{Join: []string{friend}})
	said := func(user, room, body string, more map[string]any) string {
		content := map[string]any{"msgtype": "m.text", "body": body, "m.mentions": map[string]any{"user_ids": []string{itself}}}
		maps.Copy(content, more)
		return r.s.Post(user, room, "m.room.message", content)
	}
	said(you, room, "!config listen off", nil) // what is said to others is not told either then
	r.until("the setting is not stored", func() bool { return r.count(`SELECT count(*) FROM room_setting`) == 1 })
	r.settled()
	asked := said(you, room, "tell me of #apple", nil)
	answer := r.showing(room, "", "answer 1 to #apple")[1:]
	r.settled()
	replace := func(event string) map[string]any { return map[string]any{"rel_type": "m.replace", "event_id": event} }
	fresh := func(body, msgtype string) map[string]any {
		return map[string]any{"msgtype": msgtype, "body": body, "m.mentions": map[string]any{"user_ids": []string{itself}}}
	}
	said(friend, room, "* #foreign", map[string]any{"m.relates_to": replace(asked), "m.new_content": fresh("#foreign", "m.text")})
	said(you, room, "* #empty", map[string]any{"m.relates_to": replace(asked)})
	said(you, room, "* #lone", map[string]any{"m.new_content": fresh("#lone", "m.text")})
	said(you, room, "* #notice", map[string]any{"m.relates_to": replace(asked), "m.new_content": fresh("#notice", "m.notice")})
	said(you, room, "* #ours", map[string]any{"m.relates_to": replace(answer[0].id), "m.new_content": fresh("#ours", "m.text")})
	said(you, room, "* #unknown", map[string]any{"m.relates_to": replace("$unknown"), "m.new_content": fresh("#unknown", "m.text")})
	theirs := r.s.Say(friend, room, "what of the #bystander?")
	said(you, room, "* #theirs", map[string]any{"m.relates_to": replace(theirs), "m.new_content": fresh("#theirs", "m.text")})
	last := r.edit(friend, room, theirs, "what of the #passer?")
	r.until("not taken in", func() bool { return r.count(`SELECT count(*) FROM matrix_room WHERE last_event = ?`, last) == 1 })
	r.settled()
	first := said(you, room, "* tell me of #pear", map[string]any{"m.relates_to": replace(asked), "m.new_content": fresh("tell me of #pear", "m.text")})
	r.settles(room, "", "answer 2 to #pear")
	said(you, room, "* tell me of #plum", map[string]any{"m.relates_to": replace(first), "m.new_content": fresh("tell me of #plum", "m.text")})
	r.settles(room, "", "answer 3 to #plum")
	m.made(t, 3)
	said(friend, room, "* tell me of #mention", map[string]any{"m.relates_to": replace(theirs), "m.new_content": fresh("tell me of #mention", "m.text")})
	said(you, room, "and #last", nil)
	r.settles(room, "", "#plum", "answer 4 to #last")
	for _, word := range []string{"foreign", "empty", "lone", "notice", "ours", "unknown", "bystander", "theirs", "passer", "mention"} {
		expect.Equal(t, r.traces("#"+word), 0, "#%s is taken for something", word)
	}
}

// A redacted question's open task and sub-session end and lose their texts, and one notice says so.
// Work of others and completed work stay.
// Holds F33, M8.
func TestRedactionStopsWork(t *testing.T) {
	r, m := withEditing(t)
	stop := r.start()
	room := r.meetDirect()
	one := r.s.Say(you, room, "remind helper #apple")
	r.showing(room, "to #apple")
	r.until("nothing works in the background", func() bool { return m.calls() == 3 })
	two := r.s.Say(you, room, "remind #fig")
	r.settles(room, "to #apple", "to #fig")
	r.redact(you, room, one)
	const notice = "You deleted your message, so I cancelled what it had started (tasks: 1, sub-sessions: "
	r.showing(room, "to #fig", notice+"1)")
	r.until("the sub-session works on", func() bool { return m.givenUp() == 1 })
	r.settled()
	for what, query := range map[string]string{
		"tasks that stay":        `SELECT count(*) FROM task WHERE status = 'active' AND content LIKE '%#fig%'`,
		"tasks that are deleted": `SELECT count(*) FROM task WHERE status = 'deleted' AND content = '[taken back]'`,
		"sub-sessions that end":  `SELECT count(*) FROM sub_session WHERE status = 'cancelled' AND reported_at > 0`,
	} {
		expect.Equal(t, r.count(query), 1, "%s", what)
	}
	if n := r.traces("#apple") + r.count(`SELECT (SELECT count(*) FROM task WHERE content LIKE '%#apple%') + (SELECT count(*) FROM sub_session WHERE objective || context || result LIKE '%#apple%')`); n != 0 {
		t.Errorf("its words stand in %d places", n)
	}
	stop()
	r.start()
	r.s.Say(you, room, "#kiwi")
	r.showing(room, "to #fig", notice+"1)", "to #kiwi")
	if n := r.count(`UPDATE task SET status = 'completed', next_due = NULL WHERE status = 'active' RETURNING 1`); n != 1 {
		t.Fatal("no task to do")
	}
	r.redact(you, room, two)
	r.settles(room, notice+"1)", "to #kiwi")
	expect.Equal(t, r.count(`SELECT count(*) FROM task WHERE status = 'completed' AND content LIKE '%#fig%'`), 1, "tasks that were done")
}
