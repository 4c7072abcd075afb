package test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
)

// TestRoomManners: on the real homeserver clients are told of the commands where the bot may,
// a room is spoken to in its language, and the bot leaves when everybody else has.
func TestRoomManners(t *testing.T) {
	t.Parallel()
	bot, you, room, _ := newConversation(t)
	_, home, _ := strings.Cut(you.UserID(), ":")
	if e := ask(t, you, room, "!config language fr"); !strings.Contains(e.Body, "`fr`") {
		t.Errorf("got %q", e.Body)
	}
	if e := ask(t, you, room, "!stop"); !e.Encrypted || !strings.Contains(e.Body, "rien à arrêter") {
		t.Errorf("got %+v", e)
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	until("clients are not told of the commands", func() bool {
		raw, err := you.RawTimeline(t.Context(), room, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range raw {
			if bytes.Contains(e, []byte(`"org.matrix.msc4391.command_description"`)) {
				return true
			}
		}
		return false
	})
	group, err := you.CreateRoom(t.Context(), peer.Room{Name: "soon empty", Encrypted: true, Invite: []string{"@reverie:" + home}})
	if err != nil {
		t.Fatal(err)
	}
	waitJoined(t, you, group, "@reverie:"+home)
	if err := you.Leave(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	until("the bot stays in an empty room", func() bool { return strings.Contains(bot.log.String(), "everybody else has left") })
	if e := ask(t, you, room, "!whoami"); !strings.Contains(e.Body, you.UserID()) {
		t.Errorf("got %+v", e)
	}
}
