package matrix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/media"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

const botPassword = "the bot's long password"

// handler is the matrix.Handler of a bot under test.
type handler struct {
	b       *bot
	deliver func(context.Context, chat.Inbound) error
}

func (h handler) Deliver(ctx context.Context, in chat.Inbound) error { return h.deliver(ctx, in) }

func (h handler) RoomReplaced(ctx context.Context, from, to string) error {
	if move := h.b.move.Load(); move != nil {
		return (*move)(ctx, from, to)
	}
	return nil
}

func (b *bot) onUpgrade(move func(ctx context.Context, from, to string) error) { b.move.Store(&move) }
func (b *bot) onRedaction(forget func(ctx context.Context, event string) error) {
	b.forget.Store(&forget)
}

func (handler) RoomLeft(string) {}

// Redacted waits until the test has called onRedaction.
func (h handler) Redacted(ctx context.Context, event string) error {
	for ctx.Err() == nil {
		if forget := h.b.forget.Load(); forget != nil {
			return (*forget)(ctx, event)
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

// bot is a client under test with a session that echoes.
type bot struct {
	move   atomic.Pointer[func(ctx context.Context, from, to string) error]
	forget atomic.Pointer[func(ctx context.Context, event string) error]
	*matrix.Client
	t       *testing.T
	server  *homeserver.Server
	dir     string
	heard   chan chat.Message
	changes chan chat.Inbound // to what was said before; they are done with when they are here
	log     *lockedBuffer
	stopRun func() // ends Run, once
	stop    func() // ends Run and closes the database, once

	// again stops the bot and starts it again with another answer.
	again func(answer func(*bot, chat.Message)) *bot
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func config(server *homeserver.Server, dir string, db *store.DB, owners ...string) matrix.Config {
	return matrix.Config{
		Homeserver: server.URL, User: "@reverie:" + server.Name, Password: botPassword,
		Dir: dir, Owners: owners, DB: db, Media: media.Open(dir, 0),
	}
}

// openDB opens the database of a bot until the end of the test.
func openDB(t *testing.T, dir string) *store.DB {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// execute runs a statement.
func execute(t *testing.T, db *store.DB, statement string, args ...any) {
	t.Helper()
	expect.Must(db.ExecContext(t.Context(), statement, args...))(t)
}

// start opens the bot in dir and runs it until stop, or until the test ends. Without answer messages are only received.
func start(t *testing.T, server *homeserver.Server, dir string, answer func(*bot, chat.Message), owners ...string) *bot {
	t.Helper()
	return startWith(t, server, dir, answer, func(*matrix.Config) {}, owners...)
}

// startWith is start with a modified configuration.
func startWith(t *testing.T, server *homeserver.Server, dir string, answer func(*bot, chat.Message), change func(*matrix.Config), owners ...string) *bot {
	t.Helper()
	b := &bot{t: t, server: server, dir: dir, heard: make(chan chat.Message, 100), changes: make(chan chat.Inbound, 100), log: &lockedBuffer{}}
	db := openDB(t, dir)
	cfg := config(server, dir, db, owners...)
	cfg.Log = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	change(&cfg)
	var err error
	if b.Client, err = matrix.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	// go: stop ends it and waits for it.
	go func() {
		ended <- b.Run(ctx, handler{b, func(_ context.Context, in chat.Inbound) error {
			m, message := in.(chat.Message)
			if !message {
				b.changes <- in
				return b.Ack(context.Background(), chat.HeadOf(in).ID)
			}
			if answer != nil {
				answer(b, m)
			}
			b.heard <- m
			return nil
		}})
	}()
	b.stopRun = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	b.stop = sync.OnceFunc(func() {
		b.stopRun()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	b.again = func(answer func(*bot, chat.Message)) *bot {
		t.Helper()
		b.stop()
		return startWith(t, server, dir, answer, change, owners...)
	}
	t.Cleanup(func() {
		b.stop()
		if t.Failed() {
			t.Logf("the bot's log:\n%s", b.log)
		}
	})
	return b
}

// tells sends m to a room. Unlike says it may be called by an answer.
func (b *bot) tells(room string, m chat.Outgoing) {
	if err := b.Send(context.Background(), room, m); err != nil {
		b.t.Error(err)
	}
}

// done acknowledges a message.
func (b *bot) done(in chat.Message) {
	if err := b.Ack(context.Background(), in.ID); err != nil {
		b.t.Error(err)
	}
}

// echo answers a message and acknowledges it.
func echo(b *bot, in chat.Message) {
	b.tells(in.Room, chat.Outgoing{ID: "re-" + in.ID, Text: "echo: **" + in.Text + "**", ReplyTo: in.ID})
	b.done(in)
}

func (b *bot) next() chat.Message {
	b.t.Helper()
	select {
	case in := <-b.heard:
		return in
	case <-time.After(peertest.Patience):
		b.t.Fatal("the bot heard nothing")
		panic("unreachable")
	}
}

// either returns yes if c, else no.
func either[T any](c bool, yes, no T) T {
	if c {
		return yes
	}
	return no
}

// comes expects an event of the kind with this body next.
func comes(t *testing.T, p *peer.Peer, kind func(peer.Event) bool, body string) {
	t.Helper()
	if e := peertest.Next(t, p, kind); e.Body != body {
		t.Errorf("got %+v, want %q", e, body)
	}
}

// gets expects the message with this ID next.
func (b *bot) gets(id string) {
	b.t.Helper()
	if in := b.next(); in.ID != id {
		b.t.Errorf("heard %+v, want %s", in, id)
	}
}

// hears expects a message with this text next.
func (b *bot) hears(text string) {
	b.t.Helper()
	if in := b.next(); in.Text != text {
		b.t.Errorf("heard %+v, want %q", in, text)
	}
}

// judges expects the next message to be private or not, and unproven or not.
func (b *bot) judges(private, unproven bool) {
	b.t.Helper()
	if in := b.next(); in.Private != private || in.Unproven != unproven {
		b.t.Errorf("heard %+v, want private %v and unproven %v", in, private, unproven)
	}
}

// atHome starts a real homeserver with an account for the bot, and a person.
func atHome(t *testing.T) (*homeserver.Server, *peer.Peer) {
	t.Helper()
	server := homeservertest.Start(t)
	register(t, server)
	return server, peertest.Start(t, server, "you")
}

func register(t *testing.T, server *homeserver.Server) {
	t.Helper()
	expect.Must(server.Register(t.Context(), "reverie", botPassword))(t)
}

func say(t *testing.T, p *peer.Peer, room, text string) string {
	t.Helper()
	id := expect.Must(p.Say(t.Context(), room, text))(t)
	return id
}

// sayTo sends a message that mentions a user.
func sayTo(t *testing.T, p *peer.Peer, room, text, user string) string {
	t.Helper()
	id := expect.Must(p.SayTo(t.Context(), room, text, user))(t)
	return id
}

func create(t *testing.T, p *peer.Peer, r peer.Room) string {
	t.Helper()
	room := expect.Must(p.CreateRoom(t.Context(), r))(t)
	return room
}

func joined(t *testing.T, p *peer.Peer, room, user string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
	defer cancel()
	expect.OK(t, p.WaitJoined(ctx, room, user))
}

func messageIn(room string) func(peer.Event) bool { return peertest.Kind(room, peer.Message) }

// onServer returns the types of a room's events. It fails if any of them contains word.
func onServer(t *testing.T, p *peer.Peer, room, word string) map[string]int {
	t.Helper()
	events := expect.Must(p.RawTimeline(t.Context(), room, 100))(t)
	types := map[string]int{}
	for _, raw := range events {
		if strings.Contains(string(raw), word) {
			t.Errorf("the server can read %q: %s", word, raw)
		}
		var e struct {
			Type string `json:"type"`
		}
		expect.OK(t, json.Unmarshal(raw, &e))
		types[e.Type]++
	}
	return types
}

// The bot is invited and asked before its first start.
// Holds F24.
func TestInvitedAndAskedBeforeTheFirstStart(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	bot := "@reverie:" + server.Name
	plain := create(t, you, peer.Room{Direct: true, Invite: []string{bot}})
	id := say(t, you, plain, "anybody there?")
	b := start(t, server, t.TempDir(), echo, you.UserID())
	if in := b.next(); in.ID != id || in.Room != plain || !in.Private {
		t.Errorf("heard %+v", in)
	}
	if got := peertest.Next(t, you, messageIn(plain)); got.Body != "echo: **anybody there?**" || got.Encrypted {
		t.Errorf("answered %+v", got)
	}
}

// Holds M18, M20.
func TestDraftsBecomeOneMessage(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	b := start(t, server, t.TempDir(), nil, you.UserID())
	room := directChat(t, you, b)
	b.ShowTyping(t.Context(), room, true)
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Typing)); !e.On || e.Sender != b.UserID() {
		t.Errorf("typing: %+v", e)
	}
	text := ""
	write := func(more string) {
		t.Helper()
		text += more
		b.says(room, chat.Outgoing{ID: "answer", Text: text, Draft: true})
	}
	write("The first forty characters of an answer, and more")
	first := peertest.Next(t, you, messageIn(room))
	expect.Equal(t, first.Body, text, "first draft reads")
	write(", then a second helping of forty characters at least")
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Edit)); e.ID != first.ID || e.Body != text || !e.Encrypted {
		t.Errorf("second draft: %+v", e)
	}
	write(", and a third")
	text += ". Done."
	b.says(room, chat.Outgoing{ID: "answer", Text: text})
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Edit)); e.ID != first.ID || e.Body != text {
		t.Errorf("final: %+v", e)
	}
	b.ShowTyping(t.Context(), room, false)
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Typing)); e.On {
		t.Errorf("typing: %+v", e)
	}
	expect.Equal(t, onServer(t, you, room, "helping")["m.room.encrypted"], 3, "encrypted events on the server: a message and two edits")
}

// A text too large for one event arrives as its beginning and a file.
// Holds M21, M46.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	b := start(t, server, t.TempDir(), nil, you.UserID())
	room := directChat(t, you, b)
	text := strings.Repeat("line with `code`, **strong** words, <angle> & \"quotes\" äöü 日本語 🙂\n\n", 400)
	b.says(room, chat.Outgoing{ID: "large", Text: text})
	if first, file := arrives(t, you, room, b.UserID(), text); !strings.HasSuffix(first.Body, "🙂"+wholeNote) || !file.File.Sealed {
		t.Errorf("first came %q", first.Body[len(first.Body)-200:])
	}
}

// TestMain allows more parallel tests: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A redaction of an answered message is retried until it succeeds, also after a restart.
func TestRedactedAfterAnswer(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, echo)
	regret := say(t, you, room, "my secret")
	peertest.Next(t, you, messageIn(room))
	var tried atomic.Int32
	b.onRedaction(func(context.Context, string) error { tried.Add(1); return errors.New("not now") })
	s.Post(you.UserID(), room, "m.room.redaction", map[string]any{"redacts": regret})
	await(t, s, "nobody is told", func() bool { return tried.Load() > 0 })
	b.stop()
	told := make(chan string, 10)
	b = b.again(echo)
	b.onRedaction(func(_ context.Context, event string) error { told <- event; return nil })
	other := say(t, you, room, "another")
	peertest.Next(t, you, messageIn(room))
	s.Post(you.UserID(), room, "m.room.redaction", map[string]any{"redacts": other})
	got := map[string]bool{<-told: true, <-told: true}
	if !got[other] || len(got) != 2 {
		t.Errorf("told of %v", got)
	}
}

// TestMention: in a group the addressee is mentioned once, and nobody else, whatever the text contains.
func TestMention(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	friend := person(t, s, "friend")
	group := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID(), friend.UserID()}})
	joined(t, you, group, b.UserID())
	alone := metIn(t, s, you, b, false)
	for _, c := range []struct {
		name, room, text string
		notice           bool
		mention, want    []string
	}{
		{"for nobody", group, "Hello " + you.UserID(), false, nil, nil},
		{"a reminder", group, "⏰ Reminder for " + you.UserID() + ": ask " + friend.UserID(), false, []string{you.UserID()}, []string{you.UserID()}},
		{"for two", group, "for two", false, []string{you.UserID(), friend.UserID()}, []string{you.UserID(), friend.UserID()}},
		{"a notice", group, "paused", true, nil, nil},
		{"alone", alone, "⏰ Reminder: tea", false, []string{you.UserID()}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(mentioned(t, s, c.room, b.UserID()))
			b.says(c.room, chat.Outgoing{ID: c.name, Text: c.text, Notice: c.notice, Mention: c.mention})
			await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
			said := mentioned(t, s, c.room, b.UserID())[before:]
			if len(said) != 1 || !slices.Equal(said[0], c.want) {
				t.Errorf("it mentions %q, want %q", said, c.want)
			}
		})
	}
}

// mentioned lists the mentions of each message of user. Without m.mentions clients would search the text.
func mentioned(t *testing.T, s *matrixtest.Server, room, user string) (all [][]string) {
	t.Helper()
	for _, e := range eventsIn(s, room, user, "m.room.message") {
		if e.Content.Mentions == nil || e.Content.Mentions.Room {
			t.Fatalf("mentions of %+v", e)
		}
		all = append(all, e.Content.users())
	}
	return all
}

// lastSent returns the bot's last message in a room.
func lastSent(s *matrixtest.Server, room, bot string) (last roomEvent) {
	for _, e := range eventsIn(s, room, bot, "m.room.message") {
		last = e
	}
	return last
}

// TestFormatting: an answer is sent with its formatting, and hostile text that a model repeats is harmless: it
// notifies no one, runs nothing, and is attributed to no one else.
// Holds F42, M48, M49, M50, M51.
func TestFormatting(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	group := group(t, s, you, b)
	question := sayTo(t, you, group, "hello", b.UserID())
	await(t, s, "the question is not answered", func() bool { return lastSent(s, group, b.UserID()).Content.Body == "echo: **hello**" })
	for i, c := range []struct{ text, body, html string }{
		{"|a|b|\n|-|-|\n|1|2|\n\n```go\nx\n```\n\nand $x^2$", "", "<table><thead><tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead><tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n<pre><code class=\"language-go\">x\n</code></pre>\n<p>and <span data-mx-maths=\"x^2\"><code>x^2</code></span></p>"},
		{"@room <script>alert(1)</script> **now**", "@\u2060room <script>alert(1)</script> **now**", "@\u2060room &lt;script&gt;alert(1)&lt;/script&gt; <strong>now</strong>"},
		{"> <@you:matrix.test> I agree\n\nto all", "\n> <@you:matrix.test> I agree\n\nto all", "<blockquote>\n<p>&lt;@you:matrix.test&gt; I agree</p>\n</blockquote>\n<p>to all</p>"},
		{"<mx-reply>I agree</mx-reply> [x](javascript:y) ![z](https://e.x/z.png) [you](https://matrix.to/#/" + you.UserID() + ")", "", "&lt;mx-reply&gt;I agree&lt;/mx-reply&gt; x <a href=\"https://e.x/z.png\">z</a> you"},
	} {
		if c.body == "" {
			c.body = c.text
		}
		id := "looks:" + string(rune('a'+i))
		b.says(group, chat.Outgoing{ID: id, Text: c.text, ReplyTo: question})
		await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
		got := lastSent(s, group, b.UserID()).Content
		if got.Body != c.body || got.Formatted != c.html {
			t.Errorf("%.60q left as\n%q\n%q, want\n%q\n%q", c.text, got.Body, got.Formatted, c.body, c.html)
		}
		if !slices.Equal(got.users(), []string{you.UserID()}) || got.Mentions.Room {
			t.Errorf("%.60q mentions %+v", c.text, got.Mentions)
		}
	}
}

// TestLastEditSaysAll: clients without edits show each edit as a message; intermediate fallbacks are short, the last one is complete.
// Holds M20.
func TestLastEditSaysAll(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, echo)
	text := strings.Repeat("A sentence that is written slowly. ", 30)
	for i := 1; i <= 2; i++ {
		b.says(room, chat.Outgoing{ID: "slow", Text: text[:i*500], Draft: true})
		peertest.Next(t, you, spoken(room, b.UserID()))
		if got := lastSent(s, room, b.UserID()).Content; got.Live == nil || i == 2 && (len(got.Body) > 250 || got.New.Body == "" || !strings.HasPrefix(got.New.Body, got.Body[2:100])) {
			t.Errorf("a draft left as %+v", got)
		}
	}
	b.says(room, chat.Outgoing{ID: "slow", Text: text + "**The end.**"})
	await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
	if got := lastSent(s, room, b.UserID()).Content; got.Live != nil || got.Body != "* "+text+"**The end.**" || !strings.HasSuffix(got.Formatted, "<strong>The end.</strong>") || got.New.Body == "" {
		t.Errorf("the last edit left as %+v", got)
	}
}
