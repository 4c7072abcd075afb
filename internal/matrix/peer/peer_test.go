package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
)

// meet makes an encrypted direct chat of two and returns its id.
func meet(t *testing.T, a, b *peer.Peer) string {
	t.Helper()
	room, err := a.CreateRoom(t.Context(), peer.Room{Direct: true, Encrypted: true, Invite: []string{b.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	invite := peertest.Next(t, b, peertest.Kind(room, peer.Invited))
	if invite.Sender != a.UserID() {
		t.Errorf("invited by %q, want %q", invite.Sender, a.UserID())
	}
	if err := b.Join(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*peer.Peer{a, b} {
		for _, member := range []*peer.Peer{a, b} {
			ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
			if err := p.WaitJoined(ctx, room, member.UserID()); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
	}
	return room
}

func rawType(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var evt struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &evt); err != nil {
		t.Fatal(err)
	}
	return evt.Type
}

func TestTwoPeopleTalkEncrypted(t *testing.T) {
	server := homeservertest.Start(t)
	you, bot := peertest.Start(t, server, "you"), peertest.Start(t, server, "bot")
	room := meet(t, you, bot)

	const secret = "my sister's name is Jana\nsecond <b>line</b>"
	sent, err := you.Say(t.Context(), room, secret)
	if err != nil {
		t.Fatal(err)
	}
	got := peertest.Next(t, bot, peertest.Kind(room, peer.Message))
	if want := (peer.Event{Kind: peer.Message, Room: room, Sender: you.UserID(), ID: sent, Body: secret, Encrypted: true}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	raw, err := bot.Raw(t.Context(), room, sent)
	if err != nil {
		t.Fatal(err)
	}
	if kind := rawType(t, raw); kind != "m.room.encrypted" {
		t.Errorf("the server has an event of type %s, want m.room.encrypted", kind)
	}

	answer, err := bot.Reply(t.Context(), room, sent, "noted")
	if err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Message)); e.Body != "noted" || e.ReplyTo != sent || e.ID != answer {
		t.Errorf("reply arrived as %+v", e)
	}
	if err := bot.Edit(t.Context(), room, answer, "noted: Jana"); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Edit)); e.Body != "noted: Jana" || e.ID != answer || !e.Encrypted {
		t.Errorf("edit arrived as %+v, want the new text under the id %s", e, answer)
	}

	for _, on := range []bool{true, false} {
		if err := bot.Typing(t.Context(), room, on); err != nil {
			t.Fatal(err)
		}
		if e := peertest.Next(t, you, peertest.Kind(room, peer.Typing)); e.On != on || e.Sender != bot.UserID() {
			t.Errorf("typing %v arrived as %+v", on, e)
		}
	}

	timeline, err := you.RawTimeline(t.Context(), room, 100)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := 0
	for _, raw := range timeline {
		if strings.Contains(string(raw), "Jana") {
			t.Errorf("the server can read: %s", raw)
		}
		if rawType(t, raw) == "m.room.encrypted" {
			encrypted++
		}
	}
	if encrypted != 3 {
		t.Errorf("%d encrypted events on the server, want 3", encrypted)
	}

	if err := bot.Leave(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Left)); e.Sender != bot.UserID() {
		t.Errorf("leaving arrived as %+v", e)
	}
}

func TestMention(t *testing.T) {
	server := homeservertest.Start(t)
	you, bot := peertest.Start(t, server, "you"), peertest.Start(t, server, "bot")
	room, err := you.CreateRoom(t.Context(), peer.Room{Name: "group", Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := bot.Join(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	sent, err := you.SayTo(t.Context(), room, "1 < 2?", bot.UserID())
	if err != nil {
		t.Fatal(err)
	}
	e := peertest.Next(t, bot, peertest.Kind(room, peer.Message))
	wantHTML := `<a href="https://matrix.to/#/` + bot.UserID() + `">bot</a>: 1 &lt; 2?`
	if e.Body != "bot: 1 < 2?" || e.HTML != wantHTML || e.Encrypted {
		t.Errorf("got %+v", e)
	}
	raw, err := you.Raw(t.Context(), room, sent)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), `"m.mentions":{"user_ids":["`+bot.UserID()+`"]}`) {
		t.Errorf("no mention in %s", raw)
	}
}

// A client that has heard nothing of the room it is in: here the Matrix library by
// itself would send in the clear.
func TestNothingLeavesInTheClear(t *testing.T) {
	server := homeservertest.Start(t)
	you := peertest.Start(t, server, "you")
	user, err := server.Register(t.Context(), "bot", "bot-password")
	if err != nil {
		t.Fatal(err)
	}
	bot, err := peer.Login(t.Context(), peer.Config{
		Homeserver: server.URL, User: user, Password: "bot-password", DB: filepath.Join(t.TempDir(), "bot.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer bot.Close()
	// It receives until the first room is there, and never again.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	// go: waited for below.
	go func() { ended <- bot.Run(ctx) }()
	first, err := you.CreateRoom(t.Context(), peer.Room{Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	peertest.Next(t, bot, peertest.Kind(first, peer.Invited))
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	room, err := you.CreateRoom(t.Context(), peer.Room{Direct: true, Encrypted: true, Invite: []string{bot.UserID()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := bot.Join(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	sent, err := bot.Say(t.Context(), room, "right after joining")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := you.Raw(t.Context(), room, sent)
	if err != nil {
		t.Fatal(err)
	}
	if kind := rawType(t, raw); kind != "m.room.encrypted" {
		t.Fatalf("sent as %s", kind)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Message)); e.Body != "right after joining" || !e.Encrypted {
		t.Errorf("arrived as %+v", e)
	}
}

func TestNothingIsEncryptedForNobody(t *testing.T) {
	server := homeservertest.Start(t)
	you := peertest.Start(t, server, "you")
	room, err := you.CreateRoom(t.Context(), peer.Room{Encrypted: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := you.Say(t.Context(), room, "hello?"); !errors.Is(err, peer.ErrAlone) {
		t.Errorf("alone in the room: error %v, want ErrAlone", err)
	}
}

// The same file is the same device: the password is not needed again, and what was
// said in between can be read, across a crash of the homeserver too.
func TestComingBack(t *testing.T) {
	dir, binDir := t.TempDir(), homeservertest.Build(t)
	server, err := homeserver.Start(t.Context(), homeserver.Config{BinDir: binDir, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Kill() })
	bot := peertest.Start(t, server, "bot")
	user, err := server.Register(t.Context(), "you", "you-password")
	if err != nil {
		t.Fatal(err)
	}
	cfg := peer.Config{Homeserver: server.URL, User: user, Password: "you-password", DB: filepath.Join(t.TempDir(), "you.db")}
	var room string
	t.Run("before", func(t *testing.T) { // at the end of the subtest the peer closes
		you, err := peer.Login(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		peertest.Run(t, you)
		room = meet(t, you, bot)
	})
	if room == "" {
		t.FailNow()
	}
	if _, err := bot.Say(t.Context(), room, "while you were away"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if server, err = homeserver.Start(t.Context(), homeserver.Config{BinDir: binDir, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	t.Run("after", func(t *testing.T) {
		cfg.Password = "not needed again"
		you, err := peer.Login(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		peertest.Run(t, you)
		if e := peertest.Next(t, you, peertest.Kind(room, peer.Message)); e.Body != "while you were away" || !e.Encrypted {
			t.Errorf("arrived as %+v", e)
		}
		if _, err := you.Say(t.Context(), room, "I am back"); err != nil {
			t.Fatal(err)
		}
		if e := peertest.Next(t, bot, peertest.Kind(room, peer.Message)); e.Body != "I am back" || !e.Encrypted {
			t.Errorf("arrived as %+v", e)
		}
		if info, err := os.Stat(cfg.DB); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("database: %v, %v; want mode 0600", info.Mode(), err)
		}
	})
}

func TestLoginErrors(t *testing.T) {
	server := homeservertest.Start(t)
	if _, err := server.Register(t.Context(), "you", "you-password"); err != nil {
		t.Fatal(err)
	}
	_, err := peer.Login(t.Context(), peer.Config{Homeserver: server.URL, User: "you", Password: "wrong", DB: filepath.Join(t.TempDir(), "db")})
	if err == nil || !strings.Contains(err.Error(), "peer login as you") {
		t.Errorf("wrong password: error %v, want one that names the user", err)
	}
}
