package test

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
)

// TestManners: on a real homeserver, encrypted: what a message replies to reads as it was
// edited; an answer that would take many messages is its beginning and a file, once, though
// the bot is killed over it; a task goes with the message that asked for it.
// Holds M8, M47.
func TestManners(t *testing.T) {
	t.Parallel()
	bot, you, room, m := newConversation(t)
	bot.kill()
	bot.configure(t, ", window: 131072, max_output: 40000}")
	bot.start(t, "the password is not needed again")
	line, err := you.Say(t.Context(), room, "we leave at nine")
	must(t, err)
	hear(t, you, room)
	for _, words := range []string{"we leave at eight", "we leave at ten"} {
		must(t, you.Edit(t.Context(), room, line, words))
	}
	for e := hear(t, you, room); !strings.Contains(e.Body, "ten") && e.Kind != peer.Edit; e = hear(t, you, room) {
	}
	ask(t, you, room, "hello") // so that the reply is to an older one
	_, err = you.Reply(t.Context(), room, line, "is that so?")
	must(t, err)
	hear(t, you, room)
	if last, _ := m.last.Load().(string); !strings.Contains(last, "we leave at ten") || strings.Contains(last, "we leave at nine") {
		t.Errorf("the model reads %s", last)
	}

	asked, err := you.Say(t.Context(), room, "remind me to water the plants tomorrow at 9")
	must(t, err)
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
	_, err = you.Say(t.Context(), room, "rehearse: long 20000")
	must(t, err)
	for m.calls.Load() == calls {
		time.Sleep(5 * time.Millisecond)
	}
	bot.kill()
	bot.start(t, "the password is not needed again")
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
