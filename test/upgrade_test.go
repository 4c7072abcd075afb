package test

import (
	"bytes"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"reverie/internal/matrix/peer"
)

// TestGroupMovesOn: in an encrypted group a picture is for nobody until who may talk to the
// bot replies to it with a mention; then the model sees it. When the room is upgraded, the new
// one has the conversation, the memory, the tasks and the settings.
// Holds M31, M53, M54.
func TestGroupMovesOn(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newModel(t)
	you, guest := w.person(t, "you"), w.person(t, "guest")
	bot := w.bot(t, "reverie", m, you.UserID())
	bot.kill()
	bot.configure(t, ", vision: true}")
	bot.start(t, password("reverie"))
	id := "@reverie:" + w.home.Name
	room := groupRoom(t, you, guest, id)

	var photo bytes.Buffer
	must(t, jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 2000, 1000)), nil))
	theirs, err := guest.SendFile(t.Context(), room, peer.File{Name: "fence.jpg", Type: "image/jpeg", Image: true, Data: photo.Bytes()}, nil)
	must(t, err)
	for e := range you.Events() {
		if e.ID == theirs {
			break
		}
	}
	_, err = you.Reply(t.Context(), room, theirs, "Which one is it?", id)
	must(t, err)
	if e := hear(t, you, room); !e.Encrypted || !strings.Contains(e.Body, "image/jpeg, 1024×512 pixels") || m.calls.Load() != 1 {
		t.Errorf("of the picture it says %q, after %d requests", e.Body, m.calls.Load())
	}
	tell := func(room, text string) peer.Event {
		t.Helper()
		_, err := you.SayTo(t.Context(), room, text, id)
		must(t, err)
		return hear(t, you, room)
	}
	tell(room, "!remember the fence is azure")
	tell(room, "remind me tomorrow to paint the fence") // somebody's picture was read here, so it asks first
	allow(t, you, room)
	hear(t, you, room)
	tell(room, "!config language de")

	next, err := you.Upgrade(t.Context(), room, "11", id)
	must(t, err)
	waitJoined(t, you, next, id)
	if e := hear(t, you, next); !e.Notice || !e.Encrypted {
		t.Errorf("in the new room it says %+v", e)
	}
	for text, want := range map[string]string{"!memory": "the fence is azure", "!tasks": "Paint the fence", "!whoami": "Du bist"} {
		if e := tell(next, text); !strings.Contains(e.Body, want) {
			t.Errorf("%s in the new room: %q", text, e.Body)
		}
	}
	tell(next, "what next?")
	if last, _ := m.last.Load().(string); !strings.Contains(last, "Which one is it?") {
		t.Errorf("in the new room the model is asked\n%s", last)
	}
}
