package test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
)

// TestAlwaysThreads: on a real homeserver, encrypted, where all answers stand in threads:
// lines that follow each other are in one, !retry outside of it finds it, an edit has the
// answer there changed, ❌ ends one; of an answer in several messages each stands for all;
// and what is written beside a file can be edited, too.
// Holds M3, M4, M5, M6, M10, M11, M24, M25, M62.
func TestAlwaysThreads(t *testing.T) {
	bot, you, room, m := newConversation(t)
	bot.kill()
	bot.configure(t, ", window: 131072, max_output: 40000}")
	bot.start(t, "the password is not needed again")
	sent := func() string { last, _ := m.last.Load().(string); return last }
	said := func(id string, err error) string {
		t.Helper()
		must(t, err)
		return id
	}
	// until waits for a message of the bot, or one that reads so now, and sees to it that it is
	// encrypted and, if it is new, in the thread.
	until := func(thread, word string) peer.Event {
		t.Helper()
		for {
			e := hear(t, you, room)
			if !e.Encrypted || e.Kind == peer.Message && e.Thread != thread {
				t.Fatalf("%+v; want it encrypted, in the thread %q", e, thread)
			}
			if strings.Contains(e.Body, word) {
				return e
			}
		}
	}
	if e := ask(t, you, room, "!config threads always"); !strings.Contains(e.Body, "`always`") {
		t.Fatalf("got %+v", e)
	}
	first := said(you.Say(t.Context(), room, "walrus one"))
	said(you.Say(t.Context(), room, "walrus two"))
	third := said(you.Say(t.Context(), room, "walrus three"))
	answer := until(first, "three")
	if last := sent(); !strings.Contains(last, "walrus one") || !strings.Contains(last, "walrus two") {
		t.Errorf("the thread does not know its lines: %s", last)
	}
	said(you.Say(t.Context(), room, "!retry"))
	if again := until(first, "three"); again.ID == answer.ID {
		t.Errorf("!retry said nothing new: %+v", again)
	}
	must(t, you.Edit(t.Context(), room, third, "walrus four"))
	if e := until(first, "four"); e.Kind != peer.Edit {
		t.Errorf("an edit is answered by %+v", e)
	}
	if last := sent(); strings.Contains(last, "walrus three") {
		t.Errorf("the model is told of the words before: %s", last)
	}
	calls := m.calls.Load()
	slow := said(you.SayIn(t.Context(), room, first, "rehearse: slow 10m"))
	for m.calls.Load() == calls {
		time.Sleep(5 * time.Millisecond)
	}
	must(t, you.React(t.Context(), room, slow, "❌"))
	until(first, "I stopped")

	long := said(you.SayIn(t.Context(), room, first, "rehearse: long 6000"))
	parts := []peer.Event{until(first, ""), until(first, "")}
	for parts[0].ID == parts[1].ID { // it was shown while it was written
		parts[1] = until(first, "")
	}
	calls = m.calls.Load()
	must(t, you.React(t.Context(), room, parts[1].ID, "🔁"))
	for m.calls.Load() == calls {
		time.Sleep(5 * time.Millisecond)
	}
	must(t, you.Redact(t.Context(), room, long))
	if err := you.Redact(t.Context(), room, slow); err != nil { // what was stopped stays in the conversation else
		t.Fatal(err)
	}
	for _, p := range parts {
		for limit := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			raw, err := you.Raw(t.Context(), room, p.ID)
			must(t, err)
			if !bytes.Contains(raw, []byte("ciphertext")) {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("a part of the answer is still there: %s", raw)
			}
		}
	}

	file := peer.File{Thread: first, Name: "notes.txt", Caption: "read the ocelot", Type: "text/plain", Data: []byte("Buy a blue kettle.\n")}
	asked := said(you.SendFile(t.Context(), room, file, nil))
	until(first, "kettle")
	file.Caption, file.Thread, file.Edits = "read the lynx", "", asked
	said(you.SendFile(t.Context(), room, file, nil))
	for limit := time.Now().Add(30 * time.Second); !strings.Contains(sent(), "lynx"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not answered anew: %s", sent())
		}
	}
	if last := sent(); !strings.Contains(last, "lynx") || strings.Contains(last, "ocelot") || !strings.Contains(last, "blue kettle") {
		t.Errorf("the model is told %s", last)
	}
	raw, err := you.RawTimeline(t.Context(), room, 100)
	must(t, err)
	for _, e := range raw {
		if bytes.Contains(e, []byte("walrus")) || bytes.Contains(e, []byte("kettle")) || bytes.Contains(e, []byte("lynx")) {
			t.Errorf("plain text on the server: %s", e)
		}
	}
}
