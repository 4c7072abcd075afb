package matrix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// network stands between the bot and its homeserver and makes trouble.
type network struct {
	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	trouble func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool
	sends   []string // transaction ids of messages that went through, in order
}

// between returns the server as seen through a network.
func between(t *testing.T, server *homeserver.Server) (*network, *homeserver.Server) {
	t.Helper()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{proxy: httputil.NewSingleHostReverseProxy(target)}
	n.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	front := httptest.NewServer(n)
	t.Cleanup(front.Close)
	return n, &homeserver.Server{URL: front.URL, Name: server.Name}
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	trouble := n.trouble
	if isSend(r) {
		n.sends = append(n.sends, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	}
	n.mu.Unlock()
	forward := func(w http.ResponseWriter) { n.proxy.ServeHTTP(w, r) }
	if trouble == nil || !trouble(w, r, forward) {
		forward(w)
	}
}

// set installs a fault; it answers the request itself and returns true, or
// returns false to let it through.
func (n *network) set(f func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trouble = f
}

func (n *network) sent() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.sends...)
}

func isSend(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/send/")
}

// times runs f for the first n requests that match, and lets the rest through.
func times(n int, match func(*http.Request) bool, f func(w http.ResponseWriter, forward func(http.ResponseWriter))) func(http.ResponseWriter, *http.Request, func(http.ResponseWriter)) bool {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		mu.Lock()
		hit := n > 0 && match(r)
		if hit {
			n--
		}
		mu.Unlock()
		if hit {
			f(w, forward)
		}
		return hit
	}
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// directChat lets you and a running bot meet in an encrypted direct chat.
func directChat(t *testing.T, you *peer.Peer, b *bot) string {
	t.Helper()
	room := create(t, you, peer.Room{Direct: true, Encrypted: true, Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	return room
}

func TestSendingThroughABadNetwork(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	b := start(t, through, t.TempDir(), nil, you.UserID())
	room := directChat(t, you, b)
	for _, c := range []struct {
		name  string
		fault func(w http.ResponseWriter, forward func(http.ResponseWriter))
	}{
		{"the answer is lost", func(w http.ResponseWriter, forward func(http.ResponseWriter)) {
			forward(httptest.NewRecorder())
			hangUp(w)
		}},
		{"the connection breaks", func(w http.ResponseWriter, _ func(http.ResponseWriter)) { hangUp(w) }},
		{"too many requests", func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"errcode":"M_LIMIT_EXCEEDED","error":"slow","retry_after_ms":50}`)
		}},
		{"a server error", func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
			w.WriteHeader(http.StatusInternalServerError)
		}},
		{"a web page", func(w http.ResponseWriter, _ func(http.ResponseWriter)) { fmt.Fprint(w, "<html>hotel network</html>") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			net.set(times(1, isSend, c.fault))
			for i := range 2 { // the second must not overtake the first
				if err := b.Say(t.Context(), room, session.Outgoing{ID: fmt.Sprint(c.name, i), Text: fmt.Sprint(c.name, " ", i)}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 2 {
				if e := peertest.Next(t, you, messageIn(room)); e.Body != fmt.Sprint(c.name, " ", i) || !e.Encrypted {
					t.Errorf("message %d arrived as %+v", i, e)
				}
			}
		})
	}
	if n := len(net.sent()); n > 15 { // one less when the lost answer was made up for by the echo
		t.Errorf("%d requests to send 10 messages with 5 faults, want at most 15", n)
	}
	if types := onServer(t, you, room, "xyzzy"); types["m.room.encrypted"] != 10 {
		t.Errorf("events on the server: %v, want 10 messages", types)
	}
}

func TestForbiddenIsGivenUp(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	b := start(t, through, t.TempDir(), nil, you.UserID())
	room := directChat(t, you, b)
	net.set(times(1, isSend, func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"errcode":"M_FORBIDDEN","error":"muted"}`)
	}))
	for _, text := range []string{"no", "yes"} {
		if err := b.Say(t.Context(), room, session.Outgoing{ID: text, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "yes" {
		t.Errorf("got %+v", e)
	}
	b.stopRun()
	if s := b.Status(t.Context()); s.Dead != 1 || s.Outbox != 0 {
		t.Errorf("status %+v, want one message given up", s)
	}
}

func copyResponse(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// The program dies after the server took the message and before that is noted.
func TestStoppedBetweenSendingAndKnowing(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	dir := t.TempDir()
	// The message goes through, its answer does not, and no sync from then on:
	// the bot cannot know.
	var cut atomic.Bool
	hang := func(r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a closed connection only when it has read all
		<-r.Context().Done()
		return true
	}
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		switch {
		case isSend(r):
			cut.Store(true)
			forward(httptest.NewRecorder())
			return hang(r)
		case cut.Load():
			return hang(r)
		case !strings.HasSuffix(r.URL.Path, "/sync"):
			return false
		}
		rec := httptest.NewRecorder()
		forward(rec)
		if cut.Load() {
			return hang(r)
		}
		copyResponse(w, rec)
		return true
	})
	b := start(t, through, dir, nil, you.UserID())
	room := directChat(t, you, b)
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "once", Text: "only once"}); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "only once" {
		t.Errorf("got %+v", e)
	}
	b.stop()
	net.set(nil)
	b = start(t, through, dir, nil, you.UserID())
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "then", Text: "then"}); err != nil {
		t.Fatal(err)
	}
	e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
	if e.Body != "then" {
		t.Errorf("after the restart came %+v: said twice", e)
	}
	if got := net.sent(); !slices.Equal(got, []string{"once", "then"}) {
		t.Errorf("sent %v: the server's memory of transactions was needed, and a restarted server has none", got)
	}
}

func TestHomeserverDownAtStart(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	net.set(times(2, func(*http.Request) bool { return true }, func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	b := start(t, through, t.TempDir(), echo, you.UserID())
	room := directChat(t, you, b)
	say(t, you, room, "there you are")
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **there you are**" {
		t.Errorf("got %+v", e)
	}
}

// The server hides that a room is encrypted. It must not be believed.
func TestEncryptionIsNeverForgotten(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	dir := t.TempDir()
	b := start(t, through, dir, nil, you.UserID())
	room := directChat(t, you, b)
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "before", Text: "a secret"}); err != nil {
		t.Fatal(err)
	}
	peertest.Next(t, you, messageIn(room))
	b.stop()
	db := openDB(t, dir)
	if _, err := db.ExecContext(t.Context(), `DELETE FROM mx_room_state`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		if !strings.HasSuffix(r.URL.Path, "/state") {
			return false
		}
		rec := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		forward(rec)
		var state, kept []map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &state); err != nil {
			t.Errorf("state: %v", err)
		}
		for _, e := range state {
			if e["type"] != "m.room.encryption" {
				kept = append(kept, e)
			}
		}
		if len(kept) == len(state) {
			t.Error("there was nothing to hide")
		}
		_ = json.NewEncoder(w).Encode(kept)
		return true
	})
	b = start(t, through, dir, nil, you.UserID())
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "after", Text: "a secret too"}); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "a secret too" || !e.Encrypted {
		t.Errorf("got %+v", e)
	}
	onServer(t, you, room, "secret")
}

// call asks the homeserver something as somebody.
func call(t *testing.T, server *homeserver.Server, method, path, token string, body, into any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/_matrix/client/v3/"+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatal(err)
		}
	}
}

type login struct {
	AccessToken string `json:"access_token"`
	DeviceID    string `json:"device_id"`
}

func logIn(t *testing.T, server *homeserver.Server, device string) (l login) {
	t.Helper()
	call(t, server, http.MethodPost, "login", "", map[string]any{
		"type": "m.login.password", "password": botPassword, "device_id": device,
		"identifier": map[string]any{"type": "m.id.user", "user": "reverie"},
	}, &l)
	return l
}

func (b *bot) account() (a login) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "matrix", "account.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		b.t.Fatal(err)
	}
	return a
}

// converse checks that both can read each other.
func converse(t *testing.T, you *peer.Peer, b *bot, room, text string) {
	t.Helper()
	say(t, you, room, text)
	if in := b.next(); in.Text != text {
		t.Errorf("the bot heard %+v", in)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **"+text+"**" || !e.Encrypted {
		t.Errorf("answered %+v", e)
	}
}

func TestTokenNoLongerValid(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	dir := t.TempDir()
	b := start(t, server, dir, echo, you.UserID())
	room := directChat(t, you, b)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID

	// While running: another login as this device takes its token away.
	logIn(t, server, device)
	converse(t, you, b, room, "two")
	if now := b.account().DeviceID; now != device {
		t.Errorf("device %s became %s", device, now)
	}
	b.stop()

	// Between two runs.
	logIn(t, server, device)
	b = start(t, server, dir, echo, you.UserID())
	converse(t, you, b, room, "three")

	// The bot speaks first: who reads that has heard of its device, too.
	speak := func(text string) {
		t.Helper()
		waitForToken(t, b)
		if err := b.Say(t.Context(), room, session.Outgoing{ID: text, Text: text}); err != nil {
			t.Fatal(err)
		}
		if e := peertest.Next(t, you, messageIn(room)); e.Body != text || !e.Encrypted {
			t.Errorf("got %+v", e)
		}
	}

	// Logged out altogether: the homeserver forgets the device with its keys.
	call(t, server, http.MethodPost, "logout", b.account().AccessToken, map[string]any{}, nil)
	speak("back in three")
	converse(t, you, b, room, "four")
	b.stop()
	call(t, server, http.MethodPost, "logout", b.account().AccessToken, map[string]any{}, nil)
	b = start(t, server, dir, echo, you.UserID())
	speak("back in four")
	converse(t, you, b, room, "five")
	if now := b.account().DeviceID; now != device {
		t.Errorf("device %s became %s", device, now)
	}
	for _, f := range check(t, b) {
		if !f.OK {
			t.Errorf("check: %+v", f)
		}
	}
	b.stop()

	// Without a password there is no way to go on, and it says so.
	call(t, server, http.MethodPost, "logout", b.account().AccessToken, map[string]any{}, nil)
	db := openDB(t, dir)
	defer db.Close()
	cfg := config(server, dir, db, you.UserID())
	cfg.Password = ""
	if _, err := matrix.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "matrix.password") {
		t.Errorf("got %v, want a word about matrix.password", err)
	}
}

// waitForToken waits until the bot has logged in again and its device is signed.
func waitForToken(t *testing.T, b *bot) {
	t.Helper()
	deadline := time.Now().Add(peertest.Patience)
	for time.Now().Before(deadline) {
		if b.logged("device signed", "verified with the recovery key") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the bot did not log in again")
}

// logged tells whether any of the words came after the last time the keys were lost.
func (b *bot) logged(words ...string) bool {
	log := b.log.String()
	log = log[strings.LastIndex(log, "lost this device's keys")+1:]
	for _, w := range words {
		if strings.Contains(log, w) {
			return true
		}
	}
	return false
}

func check(t *testing.T, b *bot) []matrix.Finding {
	t.Helper()
	db := openDB(t, b.dir)
	defer db.Close()
	return matrix.Check(t.Context(), config(b.server, b.dir, db, "@you:"+b.server.Name))
}

func TestOpenErrorsSayWhatToDo(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	dir := t.TempDir()
	open := func(change func(*matrix.Config)) error {
		t.Helper()
		db := openDB(t, dir)
		defer db.Close()
		cfg := config(server, dir, db, you.UserID())
		if change != nil {
			change(&cfg)
		}
		_, err := matrix.Open(t.Context(), cfg)
		return err
	}
	wants := func(err error, word string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want a word about %q", err, word)
		}
		if err != nil && strings.Contains(err.Error(), botPassword) {
			t.Errorf("the password is in the error: %v", err)
		}
	}
	wants(open(func(c *matrix.Config) { c.Password = "wrong password" }), "matrix.password")
	wants(open(func(c *matrix.Config) { c.Password = "" }), "matrix.password")
	wants(open(func(c *matrix.Config) { c.Password, c.Token = "", "nonsense" }), "access token")
	wants(open(func(c *matrix.Config) { c.Owners = nil }), "owners")
	wants(open(func(c *matrix.Config) { c.Allow = []string{"everybody"} }), "allow[0]")
	wants(open(func(c *matrix.Config) { c.Homeserver = "" }), "homeserver")
	wants(open(func(c *matrix.Config) { c.User = "@somebody:" + server.Name }), "matrix.user")
	if _, err := os.Stat(filepath.Join(dir, "matrix", "account.json")); err == nil {
		t.Fatal("a failed login left an account behind")
	}
	if err := open(nil); err != nil {
		t.Fatal(err)
	}
	wants(open(func(c *matrix.Config) { c.User = "@other:" + server.Name }), "data folder")

	keep := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, account := keep("matrix/pickle.key"), keep("matrix/account.json")
	write("matrix/pickle.key", bytes.Repeat([]byte{7}, 32))
	wants(open(nil), "pickle.key")
	write("matrix/pickle.key", key[:5])
	wants(open(nil), "pickle.key is damaged")
	if err := os.Remove(filepath.Join(dir, "matrix/pickle.key")); err != nil {
		t.Fatal(err)
	}
	wants(open(nil), "pickle.key is missing")
	write("matrix/pickle.key", key)
	write("matrix/account.json", []byte("{}"))
	wants(open(nil), "account.json is damaged")
	write("matrix/account.json", account)
	if err := open(nil); err != nil {
		t.Errorf("with everything back in its place: %v", err)
	}

	// bot.db is lost. Following the advice makes a new, verified device.
	for _, name := range []string{"bot.db", "bot.db-wal", "bot.db-shm"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	wants(open(nil), "account.json away")
	if err := os.Rename(filepath.Join(dir, "matrix/account.json"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	b := start(t, server, dir, echo, you.UserID())
	if s := b.Status(t.Context()); !s.CrossSigned || strings.Contains(string(account), s.Device) {
		t.Errorf("status %+v, want a new, cross-signed device", s)
	}
	converse(t, you, b, directChat(t, you, b), "hello again")
}

func TestTokenInsteadOfPassword(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	net.set(func(w http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter)) bool {
		if !strings.HasSuffix(r.URL.Path, "/device_signing/upload") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), botPassword) {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized) // as homeservers do that want to be sure
		fmt.Fprint(w, `{"session":"x","flows":[{"stages":["m.login.password"]}],"params":{}}`)
		return true
	})
	dir := t.TempDir()
	l := logIn(t, server, "BYTOKEN")
	with := func(change func(*matrix.Config)) (matrix.Status, error) {
		db := openDB(t, dir)
		defer db.Close()
		cfg := config(through, dir, db, you.UserID())
		cfg.Password, cfg.Token = "", l.AccessToken
		change(&cfg)
		c, err := matrix.Open(t.Context(), cfg)
		if err != nil {
			return matrix.Status{}, err
		}
		return c.Status(t.Context()), nil
	}
	s, err := with(func(*matrix.Config) {})
	if err != nil || s.Device != "BYTOKEN" || s.CrossSigned {
		t.Errorf("with a token: %+v, %v; want device BYTOKEN, not cross-signed", s, err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "matrix", "recovery.key"))
	if err != nil {
		t.Fatal(err)
	}
	// With the password once, the identity is published; the recovery key of
	// the first attempt stays good.
	s, err = with(func(c *matrix.Config) { c.Password = botPassword })
	if err != nil || s.Device != "BYTOKEN" || !s.CrossSigned {
		t.Errorf("with token and password: %+v, %v; want it cross-signed", s, err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "matrix", "recovery.key")); err != nil || !bytes.Equal(now, key) {
		t.Errorf("recovery key changed, %v", err)
	}
}

func TestCheckMakesNothing(t *testing.T) {
	server := homeservertest.Start(t)
	register(t, server)
	dir := t.TempDir()
	list := func(cfg matrix.Config) string {
		t.Helper()
		out := ""
		for _, f := range matrix.Check(t.Context(), cfg) {
			if (f.Remedy == "") != f.OK {
				t.Errorf("%+v: a remedy belongs to every fault and to nothing else", f)
			}
			out += fmt.Sprintln(f.OK, f.What)
		}
		return out
	}
	db := openDB(t, dir)
	defer db.Close()
	cfg := config(server, dir, db, "@you:"+server.Name)
	if got := list(cfg); strings.Contains(got, "false") || !strings.Contains(got, "not logged in yet") {
		t.Errorf("before the first start:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "matrix")); err == nil {
		t.Error("the check left files behind")
	}
	if got := list(matrix.Config{Homeserver: server.URL, User: "@reverie:x", Dir: dir}); !strings.Contains(got, "owners is empty") {
		t.Errorf("without owners:\n%s", got)
	}
	dead := cfg
	dead.Homeserver = "http://127.0.0.1:1"
	if got := list(dead); !strings.Contains(got, "does not answer") {
		t.Errorf("with no homeserver:\n%s", got)
	}
	if _, err := matrix.Open(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	if got := list(cfg); strings.Contains(got, "false") || !strings.Contains(got, "the device is cross-signed") {
		t.Errorf("after the first start:\n%s", got)
	}
	if err := os.Chmod(filepath.Join(dir, "matrix", "recovery.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := list(cfg); !strings.Contains(got, "can be read by others") {
		t.Errorf("with an open recovery key:\n%s", got)
	}
}

// A message whose key never comes: one notice, however many there are.
func TestUnreadableMessage(t *testing.T) {
	if testing.Short() {
		t.Skip("waits half a minute for a key that does not come")
	}
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		if !strings.HasSuffix(r.URL.Path, "/sync") {
			return false
		}
		rec := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		forward(rec)
		var res map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &res); err != nil {
			copyResponse(w, rec)
			return true
		}
		delete(res, "to_device")
		_ = json.NewEncoder(w).Encode(res)
		return true
	})
	b := start(t, through, t.TempDir(), echo, you.UserID())
	room := directChat(t, you, b)
	first := say(t, you, room, "one")
	say(t, you, room, "two")
	e := peertest.Next(t, you, messageIn(room))
	if !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "cannot read this message") {
		t.Errorf("after %s came %+v", first, e)
	}
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "next", Text: "next"}); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "next" {
		t.Errorf("a second notice: %+v", e)
	}
	if s := b.Status(t.Context()); s.Undecryptable != 2 {
		t.Errorf("status %+v, want two unreadable", s)
	}
}
