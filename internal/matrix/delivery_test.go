package matrix_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// pretend starts a homeserver in memory that knows the bot.
func pretend(t *testing.T) (*matrixtest.Server, *homeserver.Server) {
	t.Helper()
	s := matrixtest.Start(t)
	s.Account("reverie", botPassword)
	return s, &homeserver.Server{URL: s.URL, Name: s.Name}
}

func person(t *testing.T, s *matrixtest.Server, name string) *peer.Peer {
	t.Helper()
	const password = "a long enough password"
	p, err := peer.Login(t.Context(), peer.Config{
		Homeserver: s.URL, User: s.Account(name, password), Password: password, DB: filepath.Join(t.TempDir(), name+".db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	peertest.Run(t, p)
	return p
}

// chat lets you and the bot meet in a direct chat. The room is made without a
// request of yours, because the bot is in it faster than your client can note
// that it was invited.
func chat(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, encrypted bool) string {
	t.Helper()
	room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Encrypted: encrypted, Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	return room
}

// await waits until holds is true.
func await(t *testing.T, s *matrixtest.Server, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
	defer cancel()
	if err := s.Await(ctx, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// inPlace puts a fault in place, and waits until no request is under way that
// has not met it.
func inPlace(t *testing.T, s *matrixtest.Server, match matrixtest.Match, fault matrixtest.Fault) *matrixtest.Hook {
	t.Helper()
	h := s.Fault(match, fault)
	await(t, s, "the fault is not met", func() bool { return h.Hits() > 0 })
	return h
}

func hurry(cfg *matrix.Config) { cfg.Hurry() }

// thief takes the to-device events out of what the bot gets, and gives them
// back later.
type thief struct {
	s    *matrixtest.Server
	bot  string
	hook *matrixtest.Hook
	mu   sync.Mutex
	loot []stolen
}

type stolen struct {
	Type    string          `json:"type"`
	Sender  string          `json:"sender"`
	Content json.RawMessage `json:"content"`
}

func steal(t *testing.T, s *matrixtest.Server, bot string) *thief {
	th := &thief{s: s, bot: bot}
	th.hook = inPlace(t, s, matrixtest.On("sync").By(bot), matrixtest.Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
		var body map[string]json.RawMessage
		var list struct {
			Events []stolen `json:"events"`
		}
		if json.Unmarshal(a.Body.Bytes(), &body) != nil || body["to_device"] == nil {
			return
		}
		if err := json.Unmarshal(body["to_device"], &list); err != nil {
			t.Error(err)
		}
		th.mu.Lock()
		th.loot = append(th.loot, list.Events...)
		th.mu.Unlock()
		delete(body, "to_device")
		left, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		a.Body.Reset()
		a.Body.Write(left)
	}))
	return th
}

// giveBack delivers the loot; to a bot that runs, only when it no longer waits
// in a request that would be robbed.
func (th *thief) giveBack(t *testing.T, running bool) {
	t.Helper()
	th.hook.Remove()
	if running {
		inPlace(t, th.s, matrixtest.On("sync").By(th.bot), matrixtest.Delay(0))
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, e := range th.loot {
		if e.Type == "m.room.encrypted" {
			th.s.SendToDevice(e.Sender, th.bot, e.Type, e.Content)
		}
	}
}

// becomes waits until the bot's status is as wanted, and returns it.
func (b *bot) becomes(not string, wanted func(matrix.Status) bool) matrix.Status {
	b.t.Helper()
	end := time.Now().Add(peertest.Patience)
	for {
		s := b.Status(b.t.Context())
		if wanted(s) {
			return s
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: %+v", not, s)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// utd waits until so many messages wait for their key.
func (b *bot) utd(n int) {
	b.t.Helper()
	b.becomes("messages that wait for their key", func(s matrix.Status) bool { return s.Undecryptable == n })
}

// The key of a message comes late: while the bot runs, while it is down, or
// when nobody waits for the answer any more.
// Holds F19.
func TestLateKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		restart bool
		age     time.Duration
	}{{"while running", false, 0}, {"while the bot was down", true, 0}, {"after hours", false, 2 * time.Hour}} {
		t.Run(c.name, func(t *testing.T) {
			s, server := pretend(t)
			you := person(t, s, "you")
			dir := t.TempDir()
			b := startWith(t, server, dir, echo, hurry, you.UserID())
			room := chat(t, s, you, b, true)
			th := steal(t, s, b.UserID())
			asked := s.Count("sendToDevice")
			say(t, you, room, "one")
			say(t, you, room, "two")
			b.utd(2)
			if e := peertest.Next(t, you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, "cannot read this message") {
				t.Errorf("while the key is missing came %+v", e)
			}
			if s.Count("sendToDevice") == asked {
				t.Error("the key was not asked for")
			}
			s.SetClock(c.age)
			if c.restart {
				b.stop()
			}
			th.giveBack(t, !c.restart)
			if c.restart {
				b = startWith(t, server, dir, echo, hurry, you.UserID())
			}
			if c.age > 0 {
				if e := peertest.Next(t, you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, "only now") {
					t.Errorf("hours later came %+v", e)
				}
			} else {
				for _, text := range []string{"one", "two"} {
					if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **"+text+"**" {
						t.Errorf("after the key came %+v, want the answer to %q", e, text)
					}
				}
			}
			b.utd(0)
			say(t, you, room, "three")
			if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **three**" {
				t.Errorf("a second notice? %+v", e)
			}
		})
	}
}

// The program died between taking a key and reading what it opens.
// Holds F19.
func TestKeyTakenBeforeTheEnd(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	th := steal(t, s, b.UserID())
	id := say(t, you, room, "one")
	b.utd(1)
	peertest.Next(t, you, messageIn(room)) // the notice: from now on the event waits for its key only
	db := openDB(t, dir)
	defer db.Close()
	var raw, session string
	if err := db.QueryRowContext(t.Context(), `SELECT raw, megolm FROM inbox WHERE id = ?`, id).Scan(&raw, &session); err != nil {
		t.Fatal(err)
	}
	th.giveBack(t, true)
	b.next()
	b.stop()
	if _, err := db.ExecContext(t.Context(), `UPDATE inbox SET state = 'utd', raw = ?, megolm = ?, next_at = 0 WHERE id = ?`, raw, session, id); err != nil {
		t.Fatal(err)
	}
	b = startWith(t, server, dir, echo, hurry, you.UserID())
	if in := b.next(); in.ID != id || in.Text != "one" {
		t.Errorf("heard %+v", in)
	}
}

// What strangers say is not kept, and not commented on.
// Holds F20.
func TestUnreadableStranger(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	s.Account("stranger", "a long enough password")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	cipher := map[string]any{"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": strings.Repeat("A", 100), "session_id": strings.Repeat("B", 43), "sender_key": "x", "device_id": "X"}
	s.SetState("@stranger:"+s.Name, room, "m.room.member", "@stranger:"+s.Name, map[string]any{"membership": "join"})
	s.Post("@stranger:"+s.Name, room, "m.room.encrypted", cipher)
	s.Post(you.UserID(), room, "m.room.encrypted", cipher)
	if e := peertest.Next(t, you, messageIn(room)); !strings.Contains(e.Body, "cannot read") {
		t.Errorf("got %+v", e)
	}
	b.utd(1)
}

// A connection on which nothing comes any more is given up.
// Holds F3.
func TestHungSync(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	inPlace(t, s, matrixtest.On("sync").By(b.UserID()).Times(1), matrixtest.Hang())
	say(t, you, room, "hello?")
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **hello?**" {
		t.Errorf("got %+v", e)
	}
}

// panicky panics when a message is taken in, as often as times says.
type panicky struct {
	slog.Handler
	mu    *sync.Mutex
	times map[string]int
}

func (p panicky) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "matrix: message" {
		r.Attrs(func(a slog.Attr) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e := a.Value.String(); a.Key == "event" && p.times[e] > 0 {
				p.times[e]--
				panic("a fault for a test")
			}
			return true
		})
	}
	return p.Handler.Handle(ctx, r)
}

func (p panicky) WithAttrs(a []slog.Attr) slog.Handler {
	return panicky{p.Handler.WithAttrs(a), p.mu, p.times}
}

// One event breaks the program: the others of its sync are answered, it is
// tried again, and in the end given up with a word to its sender.
// Holds F40.
func TestPanicOverOneEvent(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	b.stop()
	var ids []string
	for _, text := range []string{"one", "twice", "always", "two"} {
		ids = append(ids, say(t, you, room, text))
	}
	p := panicky{mu: &sync.Mutex{}, times: map[string]int{ids[1]: 2, ids[2]: 100}}
	b = startWith(t, server, dir, echo, func(cfg *matrix.Config) {
		cfg.Hurry()
		p.Handler = cfg.Log.Handler()
		cfg.Log = slog.New(p)
	}, you.UserID())
	var got []string
	for range 4 {
		got = append(got, peertest.Next(t, you, messageIn(room)).Body)
	}
	slices.Sort(got[2:])
	want := []string{"echo: **one**", "echo: **two**", "Something went wrong", "echo: **twice**"}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("message %d reads %q, want %q", i, got[i], w)
		}
	}
	b.becomes("not one message given up", func(s matrix.Status) bool { return s.Lost == 1 && s.Inbox == 0 && s.Undecryptable == 0 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := 100 - p.times[ids[2]]; n != 3 {
		t.Errorf("tried %d times, want 3", n)
	}
}

// What is no event, or none that makes sense, does not stop the others.
// Holds F39.
func TestBrokenEvents(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	var broken atomic.Bool // your own client stumbles over such events
	s.Fault(matrixtest.On("sync").By(you.UserID()), matrixtest.Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		if broken.Load() {
			return nil
		}
		return events
	}))
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	b.stop()
	broken.Store(true)
	sender := fmt.Sprintf(`"sender":%q,`, you.UserID())
	for _, raw := range []string{
		`null`, `5`, `[]`, `{}`, `{` + sender + `"content":5}`, `{` + sender + `"content":null}`, `{` + sender + `"content":[]}`,
		`{` + sender + `"origin_server_ts":"yesterday","content":{"msgtype":"m.text","body":"x"}}`,
		`{` + sender + `"type":7,"content":{}}`, `{` + sender + `"content":{"msgtype":5,"body":{}}}`,
		`{` + sender + `"content":{"msgtype":"m.text","body":"x","m.relates_to":"y"}}`,
		`{` + sender + `"type":"m.room.encrypted","content":{"algorithm":7}}`,
		`{` + sender + `"type":"m.room.redaction","content":{"redacts":[1]}}`,
		`{` + sender + `"type":"m.room.member","state_key":"` + b.UserID() + `","content":{"membership":[]}}`,
		`{` + sender + `"content":{"body":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
	} {
		if _, err := s.Inject(room, raw); err != nil {
			t.Fatal(err)
		}
	}
	s.Say(you.UserID(), room, "still there?")
	b = startWith(t, server, dir, echo, hurry, you.UserID())
	if in := b.next(); in.Text != "still there?" {
		t.Errorf("heard %+v", in)
	}
}

// The program dies while it writes an answer.
// Holds F10.
func TestDraftAfterARestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		handled bool
		want    string
	}{
		{"the question waits", false, "echo: **go on**"},
		{"the question is done", true, "the beginning of a long answer, which is never finished\n\n_(interrupted)_"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, server := pretend(t)
			you := person(t, s, "you")
			dir := t.TempDir()
			b := startWith(t, server, dir, nil, hurry, you.UserID())
			room := chat(t, s, you, b, true)
			id := say(t, you, room, "go on")
			b.next()
			if err := b.Say(t.Context(), room, session.Outgoing{ID: "re-" + id, Text: "the beginning of a long answer, which is never finished", ReplyTo: id, Draft: true}); err != nil {
				t.Fatal(err)
			}
			first := peertest.Next(t, you, messageIn(room))
			if c.handled {
				if err := b.Handled(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			b.stop() // says no more than a kill would: the draft stays as it is
			b = startWith(t, server, dir, echo, hurry, you.UserID())
			e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
			if e.Kind != peer.Edit || e.ID != first.ID || e.Body != c.want || e.Live {
				t.Errorf("after the restart came %+v, want an edit of %s that reads %q", e, first.ID, c.want)
			}
			if st := b.Status(t.Context()); st.Outbox > 1 || st.Dead != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// The answer to a send is lost, and the homeserver restarts: it would take the
// same transaction id for a new message.
// Holds F12.
func TestForgottenTransactions(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), nil, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.DelayAnswer(2*time.Second)) // slower than the next try
	s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		s.ForgetTransactions()
		hangUp(w)
	})
	for _, text := range []string{"once", "then"} {
		if err := b.Say(t.Context(), room, session.Outgoing{ID: text, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"once", "then"} {
		if e := peertest.Next(t, you, messageIn(room)); e.Body != text {
			t.Errorf("got %+v, want %q", e, text)
		}
	}
}

// From one message to the next a room changes; everybody in it can read both.
// Holds F22, F23.
func TestEncryptionFollowsTheRoom(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend, late := person(t, s, "you"), person(t, s, "friend"), person(t, s, "late")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID(), friend.UserID())
	room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}, Join: []string{friend.UserID()}})
	joined(t, you, room, b.UserID())
	joined(t, friend, room, b.UserID())
	ask := func(who *peer.Peer, text string, encrypted bool, readers ...*peer.Peer) {
		t.Helper()
		if _, err := who.SayTo(t.Context(), room, text, b.UserID()); err != nil {
			t.Fatal(err)
		}
		for _, p := range readers {
			e := peertest.Next(t, p, func(e peer.Event) bool {
				return e.Room == room && e.Kind == peer.Message && e.Body == "echo: **"+text+"**"
			})
			if e.Encrypted != encrypted {
				t.Errorf("%s sees %+v", p.UserID(), e)
			}
		}
	}
	ask(you, "plain", false, you, friend)
	s.SetState(you.UserID(), room, "m.room.encryption", "", map[string]any{"algorithm": "m.megolm.v1.aes-sha2", "rotation_period_msgs": 2})
	s.Say(friend.UserID(), room, "encrypted from now on")
	s.Say(you.UserID(), room, "encrypted from now on")
	for _, p := range []*peer.Peer{you, friend} { // have seen the change when they have seen this
		peertest.Next(t, p, func(e peer.Event) bool { return e.Body == "encrypted from now on" })
	}
	for i := range 6 { // the key changes on the way
		ask(you, fmt.Sprint("secret ", i), true, you, friend)
		ask(friend, fmt.Sprint("secret of a friend ", i), true, you, friend)
	}
	sessions := map[string]bool{}
	for _, raw := range s.Events(room) {
		var e struct {
			Sender  string
			Content struct {
				Session string `json:"session_id"`
			}
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Sender == b.UserID() && e.Content.Session != "" {
			sessions[e.Content.Session] = true
		}
	}
	if len(sessions) < 4 {
		t.Errorf("12 messages with %d keys, want a new one after every second", len(sessions))
	}
	ask(you, "one with a key that is good for one more", true, you, friend)
	s.SetState(you.UserID(), room, "m.room.member", late.UserID(), map[string]any{"membership": "invite"})
	peertest.Next(t, late, peertest.Kind(room, peer.Invited))
	if err := late.Join(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	joined(t, you, room, late.UserID())
	ask(you, "welcome", true, you, friend, late)
	onServer(t, you, room, "secret")
}

// A message is taken back while it waits behind another.
func TestRedactedWhileWaiting(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	b.stop()
	say(t, you, room, "first")
	regret := say(t, you, room, "second")
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	b = startWith(t, server, dir, func(b *bot, in session.Inbound) {
		<-hold
		echo(b, in)
	}, hurry, you.UserID())
	t.Cleanup(release)
	await(t, s, "the messages are not there", func() bool { return b.Status(t.Context()).Inbox == 2 })
	s.Post(you.UserID(), room, "m.room.redaction", map[string]any{"redacts": regret})
	await(t, s, "the message is not taken back", func() bool {
		gone, err := b.Withdrawn(t.Context(), regret)
		if err != nil {
			t.Error(err)
		}
		return gone
	})
	say(t, you, room, "third")
	release()
	for _, text := range []string{"first", "third"} {
		if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **"+text+"**" {
			t.Errorf("got %+v, want the answer to %q", e, text)
		}
	}
}

// Many messages wait in one room: they come a few at a time, in order, and do
// not hold up another room.
// Holds F15.
func TestFlood(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, hurry, you.UserID())
	flooded, quiet := chat(t, s, you, b, false), chat(t, s, you, b, false)
	b.stop()
	var ids []string
	for i := range 150 {
		ids = append(ids, s.Say(you.UserID(), flooded, fmt.Sprint(i)))
	}
	s.Say(you.UserID(), quiet, "me too")
	b = startWith(t, server, dir, nil, hurry, you.UserID())
	var got []string
	others := 0
	for len(got) < matrix.AtOnce || others == 0 {
		if in := b.next(); in.Room == flooded {
			got = append(got, in.ID)
		} else {
			others++
		}
	}
	if st := b.Status(t.Context()); st.Inbox != 151 {
		t.Errorf("status %+v", st)
	}
	for i := matrix.AtOnce; i < len(ids); i++ {
		select {
		case in := <-b.heard:
			t.Fatalf("%s was delivered while %d were waiting", in.Text, matrix.AtOnce)
		default:
		}
		if err := b.Handled(t.Context(), ids[i-matrix.AtOnce]); err != nil {
			t.Fatal(err)
		}
		got = append(got, b.next().ID)
	}
	if !slices.Equal(got, ids) {
		t.Error("the order was not kept")
	}
}
