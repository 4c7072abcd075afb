package test

import (
	"bytes"
	"image"
	"image/jpeg"
	"os"
	"strings"
	"testing"

	"reverie/internal/matrix/peer"
)

// TestFiles: in an encrypted room the model is shown a picture, made small; it reads a file
// and hears a voice message; and it sends a file that only the room can read.
// Holds M39, M40, M42, M43, M44, M45.
func TestFiles(t *testing.T) {
	t.Parallel()
	bot, you, room, _ := newConversation(t)
	bot.kill()
	bot.configure(t, ", vision: true}\n  roles: {chat: [local], transcription: [local]}")
	bot.start(t, "the password is not needed again")

	var photo bytes.Buffer
	must(t, jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 2000, 1000)), nil))
	for _, tt := range []struct {
		file peer.File
		want string
	}{
		{peer.File{Name: "photo.jpg", Caption: "Where was this?", Type: "image/jpeg", Image: true, Data: photo.Bytes()}, "image/jpeg, 1024×512 pixels"},
		{peer.File{Name: "notes.txt", Type: "application/x-unknown", Data: []byte("Buy a blue kettle.\n")}, "Buy a blue kettle."},
		{peer.File{Name: "voice.ogg", Type: "audio/ogg", Voice: true, Data: []byte("OggS\x00not really")}, "a rehearsed transcript of 15 bytes"},
		{peer.File{Name: "a.zip", Type: "text/plain", Data: []byte("PK\x03\x04\x00\x00")}, "I did not get the file a.zip: no text can be read out of this kind of file"},
	} {
		_, err := you.SendFile(t.Context(), room, tt.file, nil)
		must(t, err)
		if e := hear(t, you, room); !strings.Contains(e.Body, tt.want) || !e.Encrypted {
			t.Errorf("%s was answered with %q, not %q", tt.file.Name, e.Body, tt.want)
		}
	}

	ask(t, you, room, "send file data/BASE_PROMPT.txt") // files were read here, so it asks first
	allow(t, you, room)
	e := hear(t, you, room)
	if e.File == nil || !e.File.Sealed || !e.Encrypted || e.File.Name != "BASE_PROMPT.txt" || e.File.Caption != "Here it is." {
		t.Fatalf("got %+v %+v", e, e.File)
	}
	want, err := os.ReadFile(bot.data("BASE_PROMPT.txt"))
	must(t, err)
	if got, err := you.Download(t.Context(), e); err != nil || !bytes.Equal(got, want) {
		t.Errorf("downloaded %d bytes of %d, %v", len(got), len(want), err)
	}
	if e := hear(t, you, room); !strings.Contains(e.Body, "Done, as you allowed") {
		t.Errorf("answered %q", e.Body)
	}
	if strings.Contains(bot.log.String(), "kettle") {
		t.Error("what stands in a file stands in the log")
	}
}
