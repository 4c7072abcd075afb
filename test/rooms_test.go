package test

import (
	"strings"
	"testing"
)

// TestRoomManners: on the real homeserver a room is spoken to in its language.
// Holds M59, M67, M69.
func TestRoomManners(t *testing.T) {
	t.Parallel()
	_, you, room, _ := newConversation(t)
	if e := ask(t, you, room, "!config language fr"); !strings.Contains(e.Body, "`fr`") {
		t.Errorf("got %q", e.Body)
	}
	if e := ask(t, you, room, "!stop"); !e.Encrypted || !strings.Contains(e.Body, "rien à arrêter") {
		t.Errorf("got %+v", e)
	}
	if e := ask(t, you, room, "!whoami"); !strings.Contains(e.Body, you.UserID()) {
		t.Errorf("got %+v", e)
	}
}
