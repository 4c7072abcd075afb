package test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"reverie/internal/matrix/peer"
	"reverie/internal/test/expect"
)

// firstRun is the folder that docker-compose.yml binds to /data, and the service setup.
type firstRun struct {
	w      *world
	dir    string
	model  string
	config string
}

func newFirstRun(t *testing.T, model string) *firstRun {
	t.Helper()
	w, dir := newWorld(t), t.TempDir()
	// The path in docker-compose.yml, read from that file.
	secret := expect.Must(os.ReadFile(filepath.Join(w.dir, "registration_secret")))(t)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "..", "secret"), secret, 0o600))
	return &firstRun{w: w, dir: dir, model: model, config: filepath.Join(dir, "config.yaml")}
}

// run runs `bot first-run` to its end, with the homeserver at address.
func (f *firstRun) run(ctx context.Context, address string) (string, error) {
	cmd := exec.CommandContext(ctx, f.w.bin, "first-run", "--config", f.config, "--homeserver", address, "--address", f.w.home.URL,
		"--server-name", f.w.home.Name, "--secret-file", filepath.Join(f.dir, "..", "secret"), "--model-url", f.model, "--model", "rehearsal")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// login parses LOGIN.txt.
func (f *firstRun) login(t *testing.T) map[string]string {
	t.Helper()
	text := expect.Must(os.ReadFile(filepath.Join(f.dir, "LOGIN.txt")))(t)
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (homeserver|user|password) +(\S+)$`).FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	if len(found) != 3 {
		t.Fatalf("LOGIN.txt has no homeserver, user and password:\n%s", text)
	}
	return found
}

// files returns the files of the folder with their content; each must be readable by its owner only.
func (f *firstRun) files(t *testing.T) map[string]string {
	t.Helper()
	list := expect.Must(os.ReadDir(f.dir))(t)
	found := map[string]string{}
	for _, e := range list {
		b := expect.Must(os.ReadFile(filepath.Join(f.dir, e.Name())))(t)
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600 (%v)", e.Name(), info.Mode(), err)
		}
		found[e.Name()] = string(b)
	}
	return found
}

// account logs in without encryption and returns the account's rooms and number of other devices.
func account(t *testing.T, homeserver, user, password string) (rooms []string, devices int) {
	t.Helper()
	call := func(method, path, token string, body, into any) {
		t.Helper()
		b := expect.Must(json.Marshal(body))(t)
		req := expect.Must(http.NewRequestWithContext(t.Context(), method, homeserver+"/_matrix/client/v3"+path, bytes.NewReader(b)))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		resp := expect.Must(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s as %s: %s, %v", path, user, resp.Status, err)
		}
	}
	var in struct {
		Token string `json:"access_token"`
	}
	call("POST", "/login", "", map[string]any{"type": "m.login.password", "password": password,
		"identifier": map[string]string{"type": "m.id.user", "user": user}}, &in)
	var joined struct {
		Rooms []string `json:"joined_rooms"`
	}
	call("GET", "/joined_rooms", in.Token, nil, &joined)
	var all struct {
		Devices []any `json:"devices"`
	}
	call("GET", "/devices", in.Token, nil, &all)
	call("POST", "/logout", in.Token, nil, &struct{}{})
	return joined.Rooms, len(all.Devices) - 1
}

// TestFirstRun: the first run configures a bot without questions, and writes a login with which its
// owner finds it in an encrypted room. Another run changes nothing.
func TestFirstRun(t *testing.T) {
	m := newModel(t)
	f := newFirstRun(t, m.url)
	said, err := f.run(t.Context(), f.w.home.URL)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	login, before := f.login(t), f.files(t)
	if len(before) != 3 || before["LOGIN.txt"] == "" || before["config.yaml"] == "" || before["matrix-password"] == "" {
		t.Errorf("the first run leaves %d files, want LOGIN.txt, config.yaml and matrix-password", len(before))
	}
	for _, want := range []string{login["password"], login["user"], login["homeserver"], "Element X"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not print %q:\n%s", want, said)
		}
	}
	secret := strings.TrimSpace(before["matrix-password"])
	if strings.Contains(said, secret) || strings.Contains(before["config.yaml"], secret) {
		t.Error("the bot's password is printed, or in config.yaml")
	}
	rooms, devices := account(t, login["homeserver"], login["user"], login["password"])
	if len(rooms) != 1 || devices != 0 {
		t.Fatalf("%s has %d rooms and %d devices, want one room and none", login["user"], len(rooms), devices)
	}

	bot := &process{bin: f.w.bin, dir: f.dir, config: f.config}
	bot.start(t, "")
	bot.endsWith(t)
	you := expect.Must(peer.Login(t.Context(), peer.Config{Homeserver: login["homeserver"], User: login["user"], Password: login["password"],
		DB: filepath.Join(t.TempDir(), "peer.db")}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = you.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = you.Close() })
	waitJoined(t, you, rooms[0], "@reverie:"+f.w.home.Name)
	if e := ask(t, you, rooms[0], "hello"); !e.Encrypted || e.Body == "" {
		t.Errorf("the answer is %q, encrypted: %v", e.Body, e.Encrypted)
	}

	again, err := f.run(t.Context(), "http://127.0.0.1:1") // nothing listens there
	if err != nil || !strings.Contains(again, "nothing to set up") || strings.Contains(again, login["password"]) {
		t.Errorf("the second run: %v\n%s", err, again)
	}
	for name, text := range before {
		if now, err := os.ReadFile(filepath.Join(f.dir, name)); err != nil || string(now) != text {
			t.Errorf("the second run changed %s (%v)", name, err)
		}
	}
}

// TestFirstRunKilled kills the first run at each of its requests, before and after its effect. The
// next run completes it with the same passwords and room.
func TestFirstRunKilled(t *testing.T) {
	f := newFirstRun(t, "http://127.0.0.1:1/v1")
	target := expect.Must(url.Parse(f.w.home.URL))(t)
	forward := httputil.NewSingleHostReverseProxy(target)
	var left atomic.Int64 // requests until the kill
	var after atomic.Bool // the last request takes effect
	var kill func()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) > 0 {
			forward.ServeHTTP(w, r)
			return
		}
		if after.Load() {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		kill()
		panic(http.ErrAbortHandler) // no response
	}))
	defer proxy.Close()
	passwords := map[string][]string{}
	cuts := 0
	for whole := false; !whole; cuts++ {
		left.Store(int64(cuts/2 + 1))
		after.Store(cuts%2 == 1)
		ctx, cancel := context.WithCancel(t.Context())
		kill = cancel
		said, err := f.run(ctx, proxy.URL)
		whole = ctx.Err() == nil
		cancel()
		if whole && err != nil {
			t.Fatalf("a run that was not cut: %v\n%s", err, said)
		}
		for name, text := range f.files(t) {
			if passwords[name] = append(passwords[name], text); name == "config.yaml" && !whole {
				t.Fatal("config.yaml is there before all is made")
			}
		}
		if cuts == 0 { // as if killed between the two files
			expect.OK(t, os.Remove(filepath.Join(f.dir, "LOGIN.txt")))
			delete(passwords, "LOGIN.txt")
		}
	}
	if cuts < 16 {
		t.Errorf("only %d cuts: the proxy does not see the requests", cuts)
	}
	for name, all := range passwords {
		expect.Equal(t, len(slices.Compact(all)), 1, "%s changed between the runs", name)
	}
	login := f.login(t)
	if rooms, devices := account(t, f.w.home.URL, login["user"], login["password"]); len(rooms) != 1 || devices != 0 {
		t.Errorf("%s has %d rooms and %d devices, want one room and none", login["user"], len(rooms), devices)
	}
	account(t, f.w.home.URL, "@reverie:"+f.w.home.Name, strings.TrimSpace(passwords["matrix-password"][0]))
}

// TestFirstRunOnOldAccounts: if the passwords are lost, the error says what to do.
func TestFirstRunOnOldAccounts(t *testing.T) {
	f := newFirstRun(t, "http://127.0.0.1:1/v1")
	f.w.register(t, "reverie")
	said, err := f.run(t.Context(), f.w.home.URL)
	if err == nil || !strings.Contains(said, "matrix-password does not contain its password") {
		t.Errorf("an account of another password: %v\n%s", err, said)
	}
	if _, err := os.Stat(f.config); !os.IsNotExist(err) {
		t.Errorf("config.yaml is there: %v", err)
	}
}
