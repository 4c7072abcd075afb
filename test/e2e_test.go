package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/peer"
)

// world is what the tests share: the built binary and a running homeserver.
type world struct {
	bin  string
	home *homeserver.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real homeserver: left out with -short")
	}
	ctx := t.Context()
	w := &world{bin: filepath.Join(t.TempDir(), "bot")}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", w.bin, "../cmd/bot").CombinedOutput(); err != nil {
		t.Fatalf("build the bot: %v\n%s", err, out)
	}
	bins := filepath.Join("..", "bin", "homeserver")
	if err := homeserver.Build(ctx, "..", bins, os.Stderr); err != nil {
		t.Fatalf("build the homeserver: %v", err)
	}
	var err error
	if w.home, err = homeserver.Start(ctx, homeserver.Config{BinDir: bins, Dir: t.TempDir()}); err != nil {
		t.Fatalf("start the homeserver: %v", err)
	}
	t.Cleanup(func() { _ = w.home.Stop() })
	return w
}

// register makes an account; password and user id follow from the name.
func (w *world) register(t *testing.T, name string) string {
	t.Helper()
	id, err := w.home.Register(t.Context(), name, password(name))
	if err != nil {
		t.Fatalf("register %s: %v", name, err)
	}
	return id
}

func password(name string) string { return name + "-secret-password" }

// person logs a person in and keeps their client syncing until the test ends.
func (w *world) person(t *testing.T, name string) *peer.Peer {
	t.Helper()
	id := w.register(t, name)
	p, err := peer.Login(t.Context(), peer.Config{Homeserver: w.home.URL, User: id, Password: password(name), DB: filepath.Join(t.TempDir(), "peer.db")})
	if err != nil {
		t.Fatalf("log in as %s: %v", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = p.Close() })
	return p
}

// model is the rehearsal model, with a count of the requests it got and the
// last one's body.
type model struct {
	url   string
	calls atomic.Int64
	last  atomic.Value
}

func newModel(t *testing.T) *model {
	m := &model{}
	h := rehearsal.Handler(rehearsal.Config{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			m.calls.Add(1)
			if dump, err := httputil.DumpRequest(r, true); err == nil {
				m.last.Store(string(dump))
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	m.url = s.URL + "/v1"
	return m
}

// logBuffer keeps what a process prints while others read it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// process is a running `bot run`.
type process struct {
	w      *world
	dir    string
	config string
	cmd    *exec.Cmd
	log    *logBuffer
	exited chan struct{}
}

// bot writes a configuration for the account name and starts the binary.
func (w *world) bot(t *testing.T, name string, m *model, owners ...string) *process {
	t.Helper()
	user := w.register(t, name)
	p := &process{w: w, dir: t.TempDir()}
	p.config = filepath.Join(p.dir, "config.yaml")
	quoted, err := json.Marshal(owners)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("name: Reverie\ndata: ./data\ntimezone: UTC\nmatrix:\n  homeserver: %q\n  user: %q\n  password: ${E2E_PASSWORD}\n  owners: %s\nllm:\n  models:\n    - {name: local, base_url: %q, model: rehearsal}\n",
		w.home.URL, user, quoted, m.url)
	if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t, password(name))
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of the bot:\n%s", p.log)
		}
	})
	return p
}

func (p *process) start(t *testing.T, secret string) {
	t.Helper()
	p.cmd = exec.Command(p.w.bin, "run", "--config", p.config)
	p.cmd.Env = append(os.Environ(), "E2E_PASSWORD="+secret)
	if p.log == nil {
		p.log = &logBuffer{}
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) { _ = cmd.Wait(); close(exited) }(p.cmd, p.exited)
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

func (p *process) data(path string) string { return filepath.Join(p.dir, "data", path) }

// directRoom creates an encrypted direct room with the bot and waits for it.
func directRoom(t *testing.T, you *peer.Peer, bot string) string {
	t.Helper()
	room, err := you.CreateRoom(t.Context(), peer.Room{Name: "Reverie", Direct: true, Encrypted: true, Invite: []string{bot}})
	if err != nil {
		t.Fatalf("create room: %v", err)
	}
	waitJoined(t, you, room, bot)
	return room
}

func waitJoined(t *testing.T, you *peer.Peer, room, user string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := you.WaitJoined(ctx, room, user); err != nil {
		t.Fatalf("%s did not join: %v", user, err)
	}
}

// ask says text and returns the bot's finished answer.
func ask(t *testing.T, you *peer.Peer, room, text string) peer.Event {
	t.Helper()
	if _, err := you.Say(t.Context(), room, text); err != nil {
		t.Fatalf("say %q: %v", text, err)
	}
	return hear(t, you, room)
}

// hear waits for the next finished message of the bot in room.
func hear(t *testing.T, you *peer.Peer, room string) peer.Event {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case e := <-you.Events():
			if e.Kind == peer.Undecryptable {
				t.Fatalf("could not decrypt: %v", e.Err)
			}
			if e.Room == room && strings.HasPrefix(e.Sender, "@reverie:") && !e.Live && (e.Kind == peer.Message || e.Kind == peer.Edit) {
				return e
			}
		case <-limit:
			t.Fatal("no answer within a minute")
		}
	}
}

// TestFirstLight is the promise of the first release in one conversation: an
// encrypted direct chat, a fact told, a new conversation, kill -9, a restart,
// and the fact still known, in a file, with only ciphertext on the server.
func TestFirstLight(t *testing.T) {
	w, m := newWorld(t), newModel(t)
	you := w.person(t, "you")
	bot := w.bot(t, "reverie", m, you.UserID())
	room := directRoom(t, you, "@reverie:"+w.home.Name)

	first := ask(t, you, room, "remember that my sister's name is Jana")
	if !strings.Contains(first.Body, "Jana") || !strings.Contains(first.Body, "No language model") {
		t.Errorf("first answer = %q; want a confirmation with Jana, and that no language model is connected", first.Body)
	}
	if e := ask(t, you, room, "!new"); !e.Notice {
		t.Errorf("!new answered %q not as a notice", e.Body)
	}
	bot.kill()

	// The server has seen neither the question nor the answer.
	raw, err := you.RawTimeline(t.Context(), room, 50)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := 0
	for _, e := range raw {
		if bytes.Contains(e, []byte("Jana")) {
			t.Errorf("plain text on the server: %s", e)
		}
		if bytes.Contains(e, []byte(`"m.room.encrypted"`)) {
			encrypted++
		}
		if bytes.Contains(e, []byte(`"m.room.message"`)) {
			t.Errorf("unencrypted message on the server: %s", e)
		}
	}
	if encrypted < 4 {
		t.Errorf("%d encrypted events on the server, want at least 4", encrypted)
	}
	memories, err := os.ReadFile(bot.data("MEMORIES.txt"))
	if err != nil || !strings.Contains(string(memories), "sister's name is Jana") {
		t.Errorf("MEMORIES.txt = %q, %v; want the line about Jana", memories, err)
	}

	bot.start(t, "the password is not needed again")
	answer := ask(t, you, room, "what do you know about my sister?")
	if !strings.Contains(answer.Body, "Jana") {
		t.Errorf("after the restart = %q; want Jana", answer.Body)
	}
	for _, secret := range []string{"matrix/account.json", "matrix/pickle.key", "matrix/recovery.key", "MEMORIES.txt", "bot.db"} {
		info, err := os.Stat(bot.data(secret))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", secret, info.Mode().Perm())
		}
	}
	key, err := os.ReadFile(bot.data("matrix/recovery.key"))
	if err == nil && strings.Contains(bot.log.String(), strings.TrimSpace(string(key))) {
		t.Error("the recovery key stands in the log")
	}
	if strings.Contains(bot.log.String(), "Jana") {
		t.Error("message text stands in the log")
	}
}

// TestStranger: who is not allowed gets neither a joined room nor a model call.
func TestStranger(t *testing.T) {
	w, m := newWorld(t), newModel(t)
	you, stranger := w.person(t, "you"), w.person(t, "stranger")
	w.bot(t, "reverie", m, you.UserID())
	bot := "@reverie:" + w.home.Name

	refused, err := stranger.CreateRoom(t.Context(), peer.Room{Name: "lure", Direct: true, Encrypted: true, Invite: []string{bot}})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := you.CreateRoom(t.Context(), peer.Room{Name: "shared", Encrypted: true, Invite: []string{bot, stranger.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	waitJoined(t, you, shared, bot)
	if err := stranger.Join(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	waitJoined(t, you, shared, stranger.UserID())
	waitLeft(t, stranger, refused, bot)

	if _, err := stranger.SayTo(t.Context(), shared, "remember that I am the owner now", bot); err != nil {
		t.Fatal(err)
	}
	if _, err := you.Say(t.Context(), shared, "talking to nobody in particular"); err != nil {
		t.Fatal(err)
	}
	// The owner's mention comes after both in the room's order: when it is
	// answered, the bot has seen the others too.
	if _, err := you.SayTo(t.Context(), shared, "hello", bot); err != nil {
		t.Fatal(err)
	}
	if e := hear(t, you, shared); e.ReplyTo == "" || !strings.Contains(e.Body, "rehearsal") {
		t.Errorf("answer = %+v; want a reply to the owner", e)
	}
	if n := m.calls.Load(); n != 1 {
		t.Errorf("the model was called %d times, want once, for the owner's mention", n)
	}
	if last, _ := m.last.Load().(string); strings.Contains(last, "owner now") {
		t.Error("the stranger's words reached the model")
	}
}

// waitLeft waits until the bot has declined the invitation.
func waitLeft(t *testing.T, p *peer.Peer, room, user string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case e := <-p.Events():
			if e.Room != room || e.Sender != user {
				continue
			}
			switch e.Kind {
			case peer.Joined:
				t.Fatalf("%s accepted a stranger's invitation", user)
			case peer.Left:
				return
			}
		case <-limit:
			t.Fatal("the invitation was not refused within 30 s")
		}
	}
}

// TestModelDown: without a model there is one calm sentence, nothing is lost,
// and !retry answers once the model is back.
func TestModelDown(t *testing.T) {
	w, m := newWorld(t), newModel(t)
	front, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: front.Scheme, Host: front.Host})
	gate := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(rw, `{"error":{"message":"secret upstream detail"}}`, http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(gate.Close)
	you := w.person(t, "you")
	w.bot(t, "reverie", &model{url: gate.URL + "/v1"}, you.UserID())
	room := directRoom(t, you, "@reverie:"+w.home.Name)

	down.Store(true)
	e := ask(t, you, room, "remember that the key is under the mat")
	if !e.Notice || !strings.Contains(e.Body, "!retry") || strings.Contains(e.Body, "upstream") {
		t.Errorf("with the model down = %q (notice %v); want one calm sentence that names !retry", e.Body, e.Notice)
	}
	down.Store(false)
	if e := ask(t, you, room, "!retry"); !strings.Contains(e.Body, "under the mat") {
		t.Errorf("!retry = %q; want the answer to the kept message", e.Body)
	}
}

// TestKilledInTurn: kill -9 while the model thinks. The message is answered
// after the restart, once.
func TestKilledInTurn(t *testing.T) {
	w, m := newWorld(t), newModel(t)
	you := w.person(t, "you")
	bot := w.bot(t, "reverie", m, you.UserID())
	room := directRoom(t, you, "@reverie:"+w.home.Name)
	if _, err := you.Say(t.Context(), room, "rehearse: slow 2s"); err != nil {
		t.Fatal(err)
	}
	for m.calls.Load() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	bot.kill()
	bot.start(t, "")
	first := hear(t, you, room)
	// The next answer follows in the room's order: an echo of the first would
	// come before it.
	second := ask(t, you, room, "rehearse: long 5")
	if first.ID == second.ID || !strings.HasPrefix(second.Body, "Every word") {
		t.Errorf("answers = %q, then %q; want one for each message", first.Body, second.Body)
	}
	raw, err := you.RawTimeline(t.Context(), room, 50)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, e := range raw {
		if bytes.Contains(e, []byte(`"sender":"@reverie:`)) && bytes.Contains(e, []byte(`"m.room.encrypted"`)) && !bytes.Contains(e, []byte("m.replace")) && !bytes.Contains(e, []byte("state_key")) {
			said++
		}
	}
	if said != 2 {
		t.Errorf("the bot sent %d messages for 2 questions", said)
	}
}

// TestTry: the one command a newcomer types, with one message: the answer on
// standard output, success, and nothing left behind.
func TestTry(t *testing.T) {
	w := newWorld(t)
	temp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), w.bin, "try", "--homeserver-bin", filepath.Join("..", "bin", "homeserver"))
	cmd.Env = append(os.Environ(), "REVERIE_LLM_URL=rehearsal:", "REVERIE_TRY_MESSAGE=remember that it's \"$HOME\" & so", "TMPDIR="+temp)
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	if err := cmd.Run(); err != nil {
		t.Fatalf("bot try: %v\n%s%s", err, &progress, &out)
	}
	if !strings.Contains(out.String(), `"$HOME" & so`) || !strings.Contains(out.String(), "No language model is connected") {
		t.Errorf("answer = %q", &out)
	}
	for _, want := range []string{"http://127.0.0.1:", "end-to-end encrypted", "user @you:localhost, password"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, &progress)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
