package matrixtest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
	"reverie/internal/store/storetest"
)

const password = "a long enough password"

func testLog(t *testing.T) *slog.Logger {
	var out io.Writer = io.Discard
	if os.Getenv("MATRIXTEST_LOG") != "" {
		out = os.Stderr
	}
	return slog.New(slog.NewTextHandler(out, nil))
}

func person(t *testing.T, s *matrixtest.Server, name string) *peer.Peer {
	t.Helper()
	p, err := peer.Login(t.Context(), peer.Config{
		Homeserver: s.URL, User: s.Account(name, password), Password: password, DB: filepath.Join(t.TempDir(), name+".db"), Log: testLog(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	peertest.Run(t, p)
	return p
}

// The same conversation as between two peers over the real homeserver, in
// peer.TestTwoPeopleTalkEncrypted.
func TestTwoPeopleTalkEncrypted(t *testing.T) {
	s := matrixtest.Start(t)
	you, bot := person(t, s, "you"), person(t, s, "bot")
	room, err := you.CreateRoom(t.Context(), peer.Room{Direct: true, Encrypted: true, Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, bot, peertest.Kind(room, peer.Invited)); e.Sender != you.UserID() {
		t.Errorf("invited by %q", e.Sender)
	}
	if err := bot.Join(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*peer.Peer{you, bot} {
		for _, member := range []*peer.Peer{you, bot} {
			ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
			if err := p.WaitJoined(ctx, room, member.UserID()); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
	}
	sent, err := you.Say(t.Context(), room, "a secret")
	if err != nil {
		t.Fatal(err)
	}
	got := peertest.Next(t, bot, peertest.Kind(room, peer.Message))
	if want := (peer.Event{Kind: peer.Message, Room: room, Sender: you.UserID(), ID: sent, Body: "a secret", Encrypted: true}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	answer, err := bot.Reply(t.Context(), room, sent, "noted")
	if err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Message)); e.Body != "noted" || e.ReplyTo != sent || e.ID != answer || !e.Encrypted {
		t.Errorf("reply arrived as %+v", e)
	}
	if err := bot.Edit(t.Context(), room, answer, "noted well"); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Edit)); e.Body != "noted well" || e.ID != answer {
		t.Errorf("edit arrived as %+v", e)
	}
	for _, on := range []bool{true, false} {
		if err := bot.Typing(t.Context(), room, on); err != nil {
			t.Fatal(err)
		}
		if e := peertest.Next(t, you, peertest.Kind(room, peer.Typing)); e.On != on || e.Sender != bot.UserID() {
			t.Errorf("typing %v arrived as %+v", on, e)
		}
	}
	for _, raw := range s.Events(room) {
		if strings.Contains(string(raw), "secret") || strings.Contains(string(raw), "noted") {
			t.Errorf("the server can read: %s", raw)
		}
	}
	if err := bot.Leave(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Left)); e.Sender != bot.UserID() {
		t.Errorf("leaving arrived as %+v", e)
	}
}

// echoBot is matrix.Client with a session that repeats what it hears.
type echoBot struct {
	*matrix.Client
	stop func()
}

func startBot(t *testing.T, s *matrixtest.Server, dir string) *echoBot {
	t.Helper()
	db, err := storetest.Open(t, filepath.Join(dir, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := matrix.Open(t.Context(), matrix.Config{
		Homeserver: s.URL, User: s.Account("reverie", password), Password: password, Dir: dir,
		Owners: []string{"@you:" + s.Name}, DB: db, Log: testLog(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	// go: stop waits for it.
	go func() {
		ended <- client.Run(ctx, func(ctx context.Context, in session.Inbound) error {
			if err := client.Say(ctx, in.Room, session.Outgoing{ID: "a-" + in.ID, Text: "you said: " + in.Text, ReplyTo: in.ID}); err != nil {
				return err
			}
			return client.Handled(ctx, in.ID)
		})
	}()
	b := &echoBot{Client: client, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(b.stop)
	return b
}

// The bot's client: a cross-signed device, an invitation, an encrypted
// conversation, and the same again after both sides were restarted.
func TestClientTalksEncrypted(t *testing.T) {
	s := matrixtest.Start(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	bot := startBot(t, s, dir)
	if !bot.Status(t.Context()).CrossSigned {
		t.Error("the bot's device is not cross-signed")
	}
	room, err := you.CreateRoom(t.Context(), peer.Room{Direct: true, Encrypted: true, Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string) {
		t.Helper()
		if _, err := you.Say(t.Context(), room, text); err != nil {
			t.Fatal(err)
		}
		e := peertest.Next(t, you, func(e peer.Event) bool { return e.Kind == peer.Message || e.Kind == peer.Undecryptable })
		if e.Body != "you said: "+text || !e.Encrypted {
			t.Fatalf("answer to %q = %+v", text, e)
		}
	}
	ask("right after the invitation")
	ask("and again")
	bot.stop()
	if _, err := you.Say(t.Context(), room, "while you were away"); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(0); err != nil {
		t.Fatal(err)
	}
	startBot(t, s, dir)
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Message)); e.Body != "you said: while you were away" {
		t.Errorf("after the restart: %+v", e)
	}
	ask("back again")
	if n := s.Count("login"); n != 2 {
		t.Errorf("%d logins, want one of each", n)
	}
}

// Rotation: more than the hundred messages that one Megolm session is for, with
// key claims until the one-time keys had to be uploaded anew.
func TestKeysLast(t *testing.T) {
	s := matrixtest.Start(t)
	you := person(t, s, "you")
	bot := startBot(t, s, t.TempDir())
	room, err := you.CreateRoom(t.Context(), peer.Room{Direct: true, Encrypted: true, Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 120 {
		text := fmt.Sprint("message ", i)
		if _, err := you.Say(t.Context(), room, text); err != nil {
			t.Fatal(err)
		}
		e := peertest.Next(t, you, func(e peer.Event) bool { return e.Kind == peer.Message || e.Kind == peer.Undecryptable })
		if e.Body != "you said: "+text {
			t.Fatalf("answer to %q = %+v", text, e)
		}
	}
}

// A device that a person adds in the middle of a conversation can read what
// comes after: the lists of devices are kept up to date by /sync.
func TestNewDeviceReads(t *testing.T) {
	s := matrixtest.Start(t)
	you := person(t, s, "you")
	bot := startBot(t, s, t.TempDir())
	room, err := you.CreateRoom(t.Context(), peer.Room{Direct: true, Encrypted: true, Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	var devices []*peer.Peer // beside the first
	for _, text := range []string{"before", "after"} {
		if _, err := you.Say(t.Context(), room, text); err != nil {
			t.Fatal(err)
		}
		answer := peertest.Next(t, you, peertest.Kind(room, peer.Message))
		for _, p := range devices {
			e := peertest.Next(t, p, func(e peer.Event) bool { return e.ID == answer.ID })
			if e.Body != "you said: "+text {
				t.Errorf("answer = %+v", e)
			}
		}
		devices = append(devices, person(t, s, "you")) // it says nothing by itself
	}
}

// A server that wants the password for a first identity gets it, and a second
// identity is never taken without.
func TestIdentityNeedsPassword(t *testing.T) {
	s := matrixtest.New()
	s.AlwaysAsk = true
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	bot := startBot(t, s, t.TempDir())
	if !bot.Status(t.Context()).CrossSigned {
		t.Error("the bot's device is not cross-signed")
	}
	if n := s.Count("keys_signing"); n != 2 {
		t.Errorf("%d requests to publish the identity, want two: one is asked for the password", n)
	}
	other := login(t, s, "reverie")
	status, data := other.call(t.Context(), "POST", "keys/device_signing/upload", map[string]any{
		"master_key": map[string]any{"user_id": other.id, "usage": []string{"master"}, "keys": map[string]string{"ed25519:x": "x"}},
	})
	if status != 401 || !strings.Contains(string(data), "m.login.password") {
		t.Errorf("a second identity: %d %s", status, data)
	}
}
