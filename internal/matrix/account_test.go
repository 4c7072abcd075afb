package matrix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

// call sends a request to the homeserver.
func call(t *testing.T, server *homeserver.Server, method, path, token string, body, into any) {
	t.Helper()
	data := expect.Must(json.Marshal(body))(t)
	req := expect.Must(http.NewRequestWithContext(t.Context(), method, server.URL+"/_matrix/client/v3/"+path, bytes.NewReader(data)))(t)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp := expect.Must(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	answer := expect.Must(io.ReadAll(resp.Body))(t)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if into != nil {
		expect.OK(t, json.Unmarshal(answer, into))
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
	expect.OK(b.t, json.Unmarshal(data, &a))
	return a
}

// converse checks that you and the bot can read each other.
func converse(t *testing.T, you *peer.Peer, b *bot, room, text string) {
	t.Helper()
	say(t, you, room, text)
	b.hears(text)
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **"+text+"**" || !e.Encrypted {
		t.Errorf("answered %+v", e)
	}
}

// Holds F26.
func TestTokenNoLongerValid(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	dir := t.TempDir()
	b := start(t, server, dir, echo, you.UserID())
	room := directChat(t, you, b)
	converse(t, you, b, room, "one")
	device := b.account().DeviceID
	// While the bot runs: another login as this device revokes its token.
	logIn(t, server, device)
	converse(t, you, b, room, "two")
	expect.Equal(t, b.account().DeviceID, device, "the device")
	b.stop()
	// Between two runs.
	logIn(t, server, device)
	b = start(t, server, dir, echo, you.UserID())
	converse(t, you, b, room, "three")
	// The bot speaks first, so the reader has seen its device.
	speak := func(text string) {
		t.Helper()
		waitForToken(t, b)
		b.says(room, chat.Outgoing{ID: text, Text: text})
		if e := peertest.Next(t, you, messageIn(room)); e.Body != text || !e.Encrypted {
			t.Errorf("got %+v", e)
		}
	}
	// Logged out: the homeserver deletes the device with its keys.
	call(t, server, http.MethodPost, "logout", b.account().AccessToken, map[string]any{}, nil)
	speak("back in three")
	converse(t, you, b, room, "four")
	b.stop()
	call(t, server, http.MethodPost, "logout", b.account().AccessToken, map[string]any{}, nil)
	b = start(t, server, dir, echo, you.UserID())
	speak("back in four")
	converse(t, you, b, room, "five")
	expect.Equal(t, b.account().DeviceID, device, "the device")
	well(t, b)
	b.stop()
	// Without a password the bot stops with an error that says so.
	call(t, server, http.MethodPost, "logout", b.account().AccessToken, map[string]any{}, nil)
	db := openDB(t, dir)
	cfg := config(server, dir, db, you.UserID())
	cfg.Password = ""
	_, err := matrix.Open(t.Context(), cfg)
	wants(t, err, "matrix.password")
}

// waitForToken waits until the bot has logged in again and its device is signed.
func waitForToken(t *testing.T, b *bot) {
	t.Helper()
	b.becomes("the bot did not log in again", func(doctor.Status) bool { return b.logged("device signed", "verified with the recovery key") })
}

// logged reports whether any of the words was logged after the last loss of the keys.
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

// well fails if the doctor finds a fault.
func well(t *testing.T, b *bot) {
	t.Helper()
	for _, f := range check(t, b) {
		if !f.OK {
			t.Errorf("check: %+v", f)
		}
	}
}

func check(t *testing.T, b *bot) []doctor.Finding {
	t.Helper()
	db := openDB(t, b.dir)
	defer db.Close()
	return matrix.Check(t.Context(), config(b.server, b.dir, db, "@you:"+b.server.Name))
}

// Holds F25.
func TestOpenErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
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
	wants(open(func(c *matrix.Config) { c.User = "@somebody:" + server.Name }), "matrix.user")
	if _, err := os.Stat(filepath.Join(dir, "matrix", "account.json")); err == nil {
		t.Fatal("a failed login left an account behind")
	}
	expect.OK(t, open(nil))
	wants(open(func(c *matrix.Config) { c.User = "@other:" + server.Name }), "data folder")
	keep := func(name string) []byte {
		t.Helper()
		data := expect.Must(os.ReadFile(filepath.Join(dir, name)))(t)
		return data
	}
	write := func(name string, data []byte) {
		t.Helper()
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	key, account := keep("matrix/pickle.key"), keep("matrix/account.json")
	write("matrix/pickle.key", key[:5])
	wants(open(nil), "pickle.key is damaged")
	expect.OK(t, os.Remove(filepath.Join(dir, "matrix/pickle.key")))
	wants(open(nil), "pickle.key is missing")
	write("matrix/pickle.key", key)
	write("matrix/account.json", []byte("{}"))
	wants(open(nil), "account.json is damaged")
	write("matrix/account.json", account)
	if err := open(nil); err != nil {
		t.Errorf("with everything back in its place: %v", err)
	}
}

func TestTokenInsteadOfPassword(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
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
	with := func(change func(*matrix.Config)) (doctor.Status, error) {
		db := openDB(t, dir)
		defer db.Close()
		cfg := config(through, dir, db, you.UserID())
		cfg.Password, cfg.Token = "", l.AccessToken
		change(&cfg)
		c, err := matrix.Open(t.Context(), cfg)
		if err != nil {
			return doctor.Status{}, err
		}
		return c.Status(t.Context()), nil
	}
	s, err := with(func(*matrix.Config) {})
	if err != nil || s.Device != "BYTOKEN" || s.CrossSigned {
		t.Errorf("with a token: %+v, %v; want device BYTOKEN, not cross-signed", s, err)
	}
	key := expect.Must(os.ReadFile(filepath.Join(dir, "matrix", "recovery.key")))(t)
	// With the password once, the identity is published; the recovery key of the first attempt stays good.
	s, err = with(func(c *matrix.Config) { c.Password = botPassword })
	if err != nil || s.Device != "BYTOKEN" || !s.CrossSigned {
		t.Errorf("with token and password: %+v, %v; want it cross-signed", s, err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "matrix", "recovery.key")); err != nil || !bytes.Equal(now, key) {
		t.Errorf("recovery key changed, %v", err)
	}
}

func TestCheckChangesNothing(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	dir := t.TempDir()
	list := func(cfg matrix.Config) string {
		t.Helper()
		out := ""
		for _, f := range matrix.Check(t.Context(), cfg) {
			if (f.Remedy == "") != (f.OK && !f.Note) {
				t.Errorf("%+v: a remedy belongs to every fault and note, and to nothing else", f)
			}
			out += fmt.Sprintln(f.OK, f.What)
		}
		return out
	}
	db := openDB(t, dir)
	cfg := config(server, dir, db, "@you:"+server.Name)
	if got := list(cfg); strings.Contains(got, "false") || !strings.Contains(got, "not logged in yet") {
		t.Errorf("before the first start:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "matrix")); err == nil {
		t.Error("the check left files behind")
	}
	expect.Must(matrix.Open(context.Background(), cfg))(t)
	if got := list(cfg); strings.Contains(got, "false") || !strings.Contains(got, "the device is cross-signed") {
		t.Errorf("after the first start:\n%s", got)
	}
	expect.OK(t, os.Chmod(filepath.Join(dir, "matrix", "recovery.key"), 0o644))
	if got := list(cfg); !strings.Contains(got, "can be read by others") {
		t.Errorf("with an open recovery key:\n%s", got)
	}
}

// An invalid login ends the bot at once with an error and deletes nothing: once the account is back, the bot continues.
// Holds F26.
func TestLoggedOutForGood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		end   func(s *matrixtest.Server, bot string) (undo func())
		words []string
	}{
		{"the account is deactivated", func(s *matrixtest.Server, bot string) func() {
			s.Deactivate(bot)
			return func() { s.Reactivate(bot) }
		}, []string{"matrix.password"}},
		{"the account is deactivated, in so many words", func(s *matrixtest.Server, bot string) func() {
			s.RevokeToken(bot)
			return s.Fault(matrixtest.On("login"), matrixtest.Status(http.StatusForbidden, "M_USER_DEACTIVATED")).Remove
		}, []string{"deactivated"}},
		{"the homeserver refuses the account", func(s *matrixtest.Server, bot string) func() {
			return s.Fault(matrixtest.On("sync").By(bot), matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN")).Remove
		}, []string{"refuses this account"}},
		{"the password was changed", func(s *matrixtest.Server, bot string) func() {
			s.Account("reverie", "another long password")
			s.RevokeToken(bot)
			return func() { s.Account("reverie", botPassword) }
		}, []string{"matrix.password"}},
		{"every new token is refused", func(s *matrixtest.Server, bot string) func() {
			return s.Fault(matrixtest.On("sync").By(bot), matrixtest.Status(http.StatusUnauthorized, "M_UNKNOWN_TOKEN")).Remove
		}, []string{"refuses it again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b, room := chatting(t, true, nil) // hears, and does not handle
			open := say(t, you, room, "a question that waits")
			b.next()
			device := b.account().DeviceID
			b.stop()
			db := openDB(t, b.dir)
			cfg := config(b.server, b.dir, db, you.UserID())
			cfg.Hurry()
			client := expect.Must(matrix.Open(t.Context(), cfg))(t)
			ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
			defer cancel()
			ended := make(chan error, 1)
			// go: it ends by itself, or with ctx.
			go func() {
				ended <- client.Run(ctx, handler{deliver: func(context.Context, chat.Inbound) error { return nil }})
			}()
			await(t, s, "no sync", func() bool { return !client.Status(ctx).LastSync.IsZero() })
			logins := s.Count("login")
			undo := c.end(s, client.UserID())
			wants(t, <-ended, c.words...)
			if n := s.Count("login") - logins; n > 1 {
				t.Errorf("%d logins, want one at most", n)
			}
			if ctx.Err() != nil {
				t.Error("it did not end by itself")
			}
			expect.OK(t, db.Close())
			undo()
			b = startWith(t, b.server, b.dir, echo, hurry, you.UserID())
			b.gets(open)
			hears(t, you, room, "echo: **a question that waits**")
			expect.Equal(t, b.account().DeviceID, device, "the device")
		})
	}
}

const personPassword = "a long enough password"

// come logs a person in with the device in the file db and syncs until leave or the end of the test.
func come(t *testing.T, s *matrixtest.Server, name, db string, prepare func(*peer.Peer) error) (p *peer.Peer, leave func()) {
	t.Helper()
	p = expect.Must(peer.Login(t.Context(), peer.Config{Homeserver: s.URL, User: s.Account(name, personPassword), Password: personPassword, DB: db}))(t)
	if prepare != nil {
		expect.OK(t, prepare(p))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	// go: leave ends it and waits for it.
	go func() { defer close(done); _ = p.Run(ctx) }()
	left := false
	leave = func() {
		if left {
			return
		}
		left = true
		cancel()
		<-done
		_ = p.Close()
	}
	t.Cleanup(leave)
	return p, leave
}

func reset(p *peer.Peer) error { return p.ResetIdentity(context.Background(), personPassword) }

// lastLine returns the last line of a text that contains a word.
func lastLine(text, word string) (last string) {
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) {
			last = l
		}
	}
	return last
}

// A friend resets their identity twice: both sides can still read each other, the trust is gone, and
// the owner is told of each reset once.
// Holds F21.
func TestIdentityReset(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you := person(t, s, "you")
	db := filepath.Join(t.TempDir(), "friend.db")
	friend, leave := come(t, s, "friend", db, reset)
	with := func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Owners, cfg.Allow = []string{you.UserID()}, []string{friend.UserID()}
	}
	b := startWith(t, server, t.TempDir(), echo, with)
	dm, theirs := metIn(t, s, you, b, true), metIn(t, s, friend, b, true)
	trust := func(want string) {
		t.Helper()
		if line := lastLine(b.log.String(), `"matrix: message"`); !strings.Contains(line, "trust="+want) {
			t.Errorf("the last message came with %s, want trust=%s", line, want)
		}
	}
	converse(t, friend, b, theirs, "before you know me")
	converse(t, friend, b, theirs, "with my first identity")
	trust("cross-signed-tofu")
	converse(t, you, b, dm, "nothing to tell yet")
	for _, text := range []string{"with another one", "and with a third one"} {
		leave()
		friend, leave = come(t, s, "friend", db, reset)
		if e := peertest.Next(t, you, messageIn(dm)); !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "identity of "+friend.UserID()+" has changed") {
			t.Errorf("the owner was told %+v", e)
		}
		converse(t, friend, b, theirs, text)
		trust("cross-signed-untrusted")
	}
	// Their devices are checked again, also by a restarted bot.
	b = b.again(echo)
	leave()
	friend, _ = come(t, s, "friend", filepath.Join(t.TempDir(), "new.db"), nil)
	say(t, friend, theirs, "from a new client") // which the third identity has not signed
	expectNotice(t, friend, theirs, friend.DeviceID(), ownNotice)
	expectNotice(t, you, dm, friend.DeviceID(), otherNotice)
	hears(t, friend, theirs, "echo: **from a new client**")
	b.next()
	converse(t, friend, b, theirs, "and once more")
	converse(t, you, b, dm, "told once each?")
}

// The homeserver replaces the keys of a device: messages are still encrypted for the old keys, and the
// owner is told once.
// Holds F21.
func TestSwappedDeviceKeys(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	converse(t, you, b, room, "one")
	converse(t, you, b, room, "two")
	hook := s.Fault(matrixtest.On("keys_query").By(b.UserID()), swapKeys(t, you.UserID()))
	come(t, s, "you", filepath.Join(t.TempDir(), "second.db"), nil) // makes the bot look
	if e := peertest.Next(t, you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, "other keys for the device") {
		t.Errorf("the owner was told %+v", e)
	}
	converse(t, you, b, room, "three")
	come(t, s, "you", filepath.Join(t.TempDir(), "third.db"), nil)
	await(t, s, "the bot did not look again", func() bool { return hook.Hits() > 1 })
	converse(t, you, b, room, "told once?")
}

// swapKeys changes a user's device keys in the response to a query.
func swapKeys(t *testing.T, user string) matrixtest.Fault {
	return rewritten(t, func(body map[string]any) {
		devices, _ := body["device_keys"].(map[string]any)[user].(map[string]any)
		for _, d := range devices {
			keys := d.(map[string]any)["keys"].(map[string]any)
			for name := range keys {
				keys[name] = strings.Repeat("E", 43)
			}
		}
	})
}

// rewritten changes the JSON of responses.
func rewritten(t *testing.T, change func(body map[string]any)) matrixtest.Fault {
	return matrixtest.ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) {
		var body map[string]any
		if json.Unmarshal(a.Body.Bytes(), &body) != nil {
			return // a poll that was cut off
		}
		change(body)
		a.Body.Reset()
		if err := json.NewEncoder(a.Body).Encode(body); err != nil {
			t.Error(err)
		}
	})
}

// TestDisplayNameIsSetOnce: the first start names an account that has no name of its own. A name chosen before or
// later stays, also none and the localpart.
func TestDisplayNameIsSetOnce(t *testing.T) {
	server, you := atHome(t)
	l := logIn(t, server, "OWNER")
	field := "profile/@reverie:" + server.Name + "/displayname"
	choose := func(name string) {
		t.Helper()
		call(t, server, http.MethodPut, field, l.AccessToken, map[string]string{"displayname": name}, nil)
	}
	shown := func(dir, configured string) string {
		t.Helper()
		db := openDB(t, dir)
		defer db.Close()
		cfg := config(server, dir, db, you.UserID())
		cfg.Name = configured
		expect.Must(matrix.Open(t.Context(), cfg))(t)
		var profile struct{ DisplayName string }
		call(t, server, http.MethodGet, field, l.AccessToken, nil, &profile)
		return profile.DisplayName
	}
	dir := t.TempDir()
	expect.Equal(t, shown(dir, "Fox"), "Fox", "first start")
	expect.Equal(t, shown(dir, "Owl"), "Fox", "configured later")
	for _, name := range []string{"Renard", "reverie", ""} {
		choose(name)
		expect.Equal(t, shown(dir, "Owl"), name, "chosen in a client")
	}
	expect.OK(t, os.Remove(filepath.Join(dir, "matrix", "account.json"))) // as a new login does
	expect.Equal(t, shown(dir, "Owl"), "Owl", "none before a first start")
	for _, name := range []string{"reverie", "Renard"} {
		choose(name)
		expect.OK(t, os.Remove(filepath.Join(dir, "matrix", "account.json")))
		expect.Equal(t, shown(dir, "Owl"), strings.Replace(name, "reverie", "Owl", 1), "chosen before a first start")
	}
}
