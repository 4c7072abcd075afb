package peer_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
)

// meet creates an encrypted direct chat of two peers and returns its ID.
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

// A client knows nothing of the room it is in: mautrix itself would send plain text.
func TestNoPlainTextInEncryptedRoom(t *testing.T) {
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
	// It syncs until the first room is there, and never again.
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
