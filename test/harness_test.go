package test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
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
	"reverie/internal/test/expect"
)

// world is the shared environment of the tests: the built binary and a running homeserver.
type world struct {
	bin  string
	dir  string // the homeserver's data folder
	home *homeserver.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real homeserver: left out with -short")
	}
	ctx := t.Context()
	w := &world{bin: buildBot(t), dir: t.TempDir()}
	var err error
	if w.home, err = homeserver.Start(ctx, homeserver.Config{BinDir: buildHomeserver(t), Dir: w.dir}); err != nil {
		t.Fatalf("start the homeserver: %v", err)
	}
	t.Cleanup(func() { _ = w.home.Stop() })
	return w
}

// TestMain removes the shared builds.
func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// buildDir is the folder of the built programs; empty = not built.
var buildDir string

// buildOnce builds the bot and `try` once, with the race detector if the tests have it.
var buildOnce = sync.OnceValues(func() (bin string, err error) {
	if buildDir, err = os.MkdirTemp("", "bot"); err != nil {
		return "", err
	}
	bin = filepath.Join(buildDir, "bot")
	args := append(append([]string{"build"}, raceFlag...), "-o", buildDir+string(filepath.Separator), "../cmd/bot", "../cmd/try")
	if out, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// buildBot builds the bot from the working tree and returns its path.
func buildBot(t *testing.T) string {
	t.Helper()
	return expect.Must(buildOnce())(t)
}

func buildHomeserver(t *testing.T) (bins string) {
	t.Helper()
	bins = filepath.Join("..", "bin", "homeserver")
	expect.OK(t, homeserver.Build(t.Context(), "..", bins, os.Stderr))
	return bins
}

// register creates an account. Its password and user ID follow from the name.
func (w *world) register(t *testing.T, name string) string {
	t.Helper()
	return expect.Must(w.home.Register(t.Context(), name, password(name)))(t)
}

func password(name string) string { return name + "-secret-password" }

// person logs a person in and syncs until the test ends.
func (w *world) person(t *testing.T, name string) *peer.Peer {
	t.Helper()
	id := w.register(t, name)
	p := expect.Must(peer.Login(t.Context(), peer.Config{Homeserver: w.home.URL, User: id, Password: password(name), DB: filepath.Join(t.TempDir(), "peer.db")}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = p.Close() })
	return p
}

// model is the rehearsal model. It counts its requests and keeps the last body.
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

// logBuffer keeps the output of a process; it is safe for concurrent use.
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
	bin    string
	secret string // needed for the first login only
	home   *homeserver.Server
	dir    string
	config string
	cmd    *exec.Cmd
	log    *logBuffer
	exited chan struct{}
}

// bot writes a configuration for the account name and starts the bot.
func (w *world) bot(t *testing.T, name string, m *model, owners ...string) *process {
	t.Helper()
	p := startBot(t, w.bin, w.home.URL, w.register(t, name), m.url, owners...)
	p.home = w.home
	return p
}

// startBot writes a configuration for the account user and starts the bot.
func startBot(t *testing.T, bin, homeserver, user, model string, owners ...string) *process {
	t.Helper()
	p := &process{bin: bin, dir: t.TempDir()}
	p.config = filepath.Join(p.dir, "config.yaml")
	quoted := expect.Must(json.Marshal(owners))(t)
	config := fmt.Sprintf("name: Reverie\ndata: ./data\ntimezone: UTC\nmatrix:\n  homeserver: %q\n  user: %q\n  password: ${E2E_PASSWORD}\n  owners: %s\nllm:\n  models:\n    - {name: local, base_url: %q, model: rehearsal}\n",
		homeserver, user, quoted, model)
	expect.OK(t, os.WriteFile(p.config, []byte(config), 0o600))
	name, _, _ := strings.Cut(user[1:], ":")
	p.secret = password(name)
	p.start(t, p.secret)
	p.endsWith(t)
	return p
}

// endsWith stops the bot when the test ends.
func (p *process) endsWith(t *testing.T) {
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of the bot:\n%s", p.log)
		}
	})
}

func (p *process) start(t *testing.T, secret string) {
	t.Helper()
	p.cmd = exec.Command(p.bin, "run", "--config", p.config)
	p.cmd.Env = append(os.Environ(), "E2E_PASSWORD="+secret)
	if p.log == nil {
		p.log = &logBuffer{}
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	expect.OK(t, p.cmd.Start())
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) { _ = cmd.Wait(); close(exited) }(p.cmd, p.exited)
}

// kill sends SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

func (p *process) data(path string) string { return filepath.Join(p.dir, "data", path) }

// directRoom creates an encrypted direct room with the bot and waits for it.
func directRoom(t *testing.T, you *peer.Peer, bot string) string {
	t.Helper()
	room := expect.Must(you.CreateRoom(t.Context(), peer.Room{Name: "Reverie", Direct: true, Encrypted: true, Invite: []string{bot}}))(t)
	waitJoined(t, you, room, bot)
	return room
}

// groupRoom creates an encrypted room with another person and the bot, and waits for both.
func groupRoom(t *testing.T, you, other *peer.Peer, bot string) string {
	t.Helper()
	room := expect.Must(you.CreateRoom(t.Context(), peer.Room{Name: "garden", Encrypted: true, Invite: []string{bot, other.UserID()}}))(t)
	waitJoined(t, you, room, bot)
	expect.OK(t, other.Join(t.Context(), room))
	waitJoined(t, you, room, other.UserID())
	return room
}

// newConversation starts the bot and creates an encrypted direct room of it and its owner.
func newConversation(t *testing.T) (*process, *peer.Peer, string, *model) {
	t.Helper()
	w, m := newWorld(t), newModel(t)
	you := w.person(t, "you")
	bot := w.bot(t, "reverie", m, you.UserID())
	return bot, you, directRoom(t, you, "@reverie:"+w.home.Name), m
}

func waitJoined(t *testing.T, you *peer.Peer, room, user string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	expect.OK(t, you.WaitJoined(ctx, room, user))
}

// ask says text and returns the bot's finished answer.
func ask(t *testing.T, you *peer.Peer, room, text string) peer.Event {
	t.Helper()
	expect.Must(you.Say(t.Context(), room, text))(t)
	return hear(t, you, room)
}

// hear returns the bot's next finished message in room.
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

// restart kills the bot and starts it again, with an addition to the model's configuration.
func (p *process) restart(t *testing.T, more string) {
	t.Helper()
	p.kill()
	if more != "" {
		config := expect.Must(os.ReadFile(p.config))(t)
		expect.OK(t, os.WriteFile(p.config, bytes.Replace(config, []byte("model: rehearsal}"), []byte("model: rehearsal"+more), 1), 0o600))
	}
	p.start(t, p.secret)
}

// value returns the result of a query in the bot's database.
func value[T any](t *testing.T, p *process, query string, args ...any) (v T) {
	t.Helper()
	db := expect.Must(sql.Open("sqlite", "file:"+p.data("bot.db")+"?_pragma=busy_timeout(10000)"))(t)
	defer db.Close()
	expect.OK(t, db.QueryRowContext(t.Context(), query, args...).Scan(&v))
	return v
}

// sent returns the ID of a sent event and fails the test on an error.
func sent(t *testing.T) func(id string, err error) string {
	t.Helper()
	return func(id string, err error) string { t.Helper(); expect.OK(t, err); return id }
}

// asked waits until the model got a request after the first before ones.
func (m *model) asked(t *testing.T, before int64) {
	t.Helper()
	until(t, "the model is not asked", func() bool { return m.calls.Load() > before })
}

// lastRequest returns the body of the newest request.
func (m *model) lastRequest() string { last, _ := m.last.Load().(string); return last }

// checkSealed checks that the homeserver's events of a room contain none of the words.
func checkSealed(t *testing.T, you *peer.Peer, room string, words ...string) {
	t.Helper()
	raw := expect.Must(you.RawTimeline(t.Context(), room, 100))(t)
	for _, e := range raw {
		for _, word := range words {
			if bytes.Contains(e, []byte(word)) {
				t.Errorf("plain text on the server: %s", e)
			}
		}
	}
}
