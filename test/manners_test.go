package test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"reverie/internal/matrix/peer"
)

// TestManners: on a real homeserver, encrypted: a room is spoken to in its language, with tables and
// formulas as such; what a message replies to reads as it was edited; an answer that would take many messages is its beginning and a
// file, once, though the bot is killed over it; a task goes with the message that asked for it.
// Holds M8, M47, M48, M49, M59, M67, M69.
func TestManners(t *testing.T) {
	t.Parallel()
	bot, you, room, m := newConversation(t)
	bot.restart(t, ", window: 131072, max_output: 40000}")
	for _, c := range []struct{ say, body, html string }{
		{"!config language fr", "`fr`", ""}, {"!stop", "rien à arrêter", ""}, {"!whoami", you.UserID(), ""},
		{"!config", "| language | fr |", "<td>fr</td>"}, {"!config language en", "`en`", ""},
		{"remember that the sum is $n(n+1)/2$", "$n(n+1)/2$", `<span data-mx-maths="n(n+1)/2">`},
	} {
		if e := ask(t, you, room, c.say); !e.Encrypted || !strings.Contains(e.Body, c.body) || !strings.Contains(e.HTML, c.html) {
			t.Errorf("%s: got %+v", c.say, e)
		}
	}
	line := sent(t)(you.Say(t.Context(), room, "we leave at nine"))
	hear(t, you, room)
	for _, words := range []string{"we leave at eight", "we leave at ten"} {
		must(t, you.Edit(t.Context(), room, line, words))
	}
	for e := hear(t, you, room); !strings.Contains(e.Body, "ten") && e.Kind != peer.Edit; e = hear(t, you, room) {
	}
	ask(t, you, room, "hello") // so that the reply is to an older one
	sent(t)(you.Reply(t.Context(), room, line, "is that so?"))
	hear(t, you, room)
	if last := m.read(); !strings.Contains(last, "we leave at ten") || strings.Contains(last, "we leave at nine") {
		t.Errorf("the model reads %s", last)
	}

	asked := sent(t)(you.Say(t.Context(), room, "remind me to water the plants tomorrow at 9"))
	hear(t, you, room)
	if e := ask(t, you, room, "!tasks"); !strings.Contains(e.Body, "plants") {
		t.Fatalf("the tasks are %q", e.Body)
	}
	must(t, you.Redact(t.Context(), room, asked))
	if e := hear(t, you, room); !strings.Contains(e.Body, "tasks: 1") || !e.Notice {
		t.Errorf("it says %+v", e)
	}
	if e := ask(t, you, room, "!tasks"); strings.Contains(e.Body, "plants") {
		t.Errorf("the tasks are %q", e.Body)
	}

	calls := m.calls.Load()
	sent(t)(you.Say(t.Context(), room, "rehearse: long 20000"))
	m.asked(t, calls)
	bot.restart(t, "")
	var first, file peer.Event
	for file.File == nil {
		if e := hear(t, you, room); e.File != nil {
			file = e
		} else {
			first = e
		}
	}
	if !file.File.Sealed || !file.Encrypted || file.File.Name != "answer.md" || !strings.Contains(first.Body, "answer.md") {
		t.Errorf("got %+v, after %q", file.File, first.Body[max(0, len(first.Body)-200):])
	}
	if got, err := you.Download(t.Context(), file); err != nil || len(strings.Fields(string(got))) != 20_000 {
		t.Errorf("the file has %d bytes, %v", len(got), err)
	}
	if e := ask(t, you, room, "hello again"); e.File != nil || strings.Contains(e.Body, "answer.md") {
		t.Errorf("then came %+v", e)
	}
}

// TestEditedAndTakenBack: on a real homeserver, encrypted: an edited question has its answer
// edited, also when the bot is killed over it; a reaction has it answered anew; one that is taken back
// takes its answer and what was remembered with it.
// Holds F34, M1, M2, M6, M7, M12.
func TestEditedAndTakenBack(t *testing.T) {
	t.Parallel()
	bot, you, room, m := newConversation(t)
	question := sent(t)(you.Say(t.Context(), room, "remember that my sister's name is Jana"))
	answer := hear(t, you, room)
	inPlace := func(what string) {
		t.Helper()
		for {
			e := hear(t, you, room)
			if e.Kind != peer.Edit || e.ID != answer.ID || !e.Encrypted {
				t.Fatalf("%s: %+v; want an encrypted edit of %s", what, e, answer.ID)
			}
			if strings.Contains(e.Body, what) {
				return
			}
		}
	}
	remembers := func(name string) bool {
		memories, err := os.ReadFile(bot.data("MEMORIES.txt"))
		return err == nil && strings.Contains(string(memories), name)
	}
	must(t, you.Edit(t.Context(), room, question, "remember that my sister's name is Nora"))
	inPlace("Nora")
	if !remembers("Nora") || remembers("Jana") {
		t.Error("MEMORIES.txt has not the new words")
	}
	calls := m.calls.Load()
	must(t, you.Edit(t.Context(), room, question, "remember that my sister's name is Ruth"))
	m.asked(t, calls)
	bot.restart(t, "")
	inPlace("Ruth")
	must(t, you.React(t.Context(), room, question, "🔁"))
	if second := ask(t, you, room, "rehearse: long 5"); second.ID == answer.ID { // the edit came first
		hear(t, you, room)
	}
	must(t, you.Redact(t.Context(), room, question))
	goes(t, you, room, answer.ID)
	until(t, "it stands in MEMORIES.txt", func() bool { return !remembers("Ruth") })
	if e := ask(t, you, room, "what do you know about my sister?"); strings.Contains(e.Body, "Ruth") {
		t.Errorf("after it was taken back: %q", e.Body)
	}
}

// TestFiles: in an encrypted room the model is shown a picture, made small; it reads a file
// and hears a voice message; and it sends a file that only the room can read.
// Holds M39, M40, M42, M43, M44, M45.
func TestFiles(t *testing.T) {
	t.Parallel()
	bot, you, room, _ := newConversation(t)
	bot.restart(t, ", vision: true}\n  roles: {chat: [local], transcription: [local]}")
	for _, tt := range []struct {
		file peer.File
		want string
	}{
		{peer.File{Name: "photo.jpg", Caption: "Where was this?", Type: "image/jpeg", Image: true, Data: photo(t)}, "image/jpeg, 1024×512 pixels"},
		{peer.File{Name: "notes.txt", Type: "application/x-unknown", Data: []byte("Buy a blue kettle.\n")}, "Buy a blue kettle."},
		{peer.File{Name: "voice.ogg", Type: "audio/ogg", Voice: true, Data: []byte("OggS\x00not really")}, "a rehearsed transcript of 15 bytes"},
		{peer.File{Name: "a.zip", Type: "text/plain", Data: []byte("PK\x03\x04\x00\x00")}, "I did not get the file a.zip: no text can be read out of this kind of file"},
	} {
		sent(t)(you.SendFile(t.Context(), room, tt.file, nil))
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
