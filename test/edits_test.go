package test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
)

// TestEditedAndTakenBack: on a real homeserver, encrypted: an edited question has its answer
// edited, also when the bot is killed over it; a reaction has it answered anew; one that is taken back
// takes its answer and what was remembered with it.
// Holds F34, M1, M2, M6, M7, M12.
func TestEditedAndTakenBack(t *testing.T) {
	t.Parallel()
	bot, you, room, m := newConversation(t)
	question, err := you.Say(t.Context(), room, "remember that my sister's name is Jana")
	must(t, err)
	answer := hear(t, you, room)
	must(t, you.Edit(t.Context(), room, question, "remember that my sister's name is Nora"))
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
	inPlace("Nora")
	memories, err := os.ReadFile(bot.data("MEMORIES.txt"))
	if err != nil || !strings.Contains(string(memories), "Nora") || strings.Contains(string(memories), "Jana") {
		t.Errorf("MEMORIES.txt = %q, %v", memories, err)
	}
	calls := m.calls.Load()
	must(t, you.Edit(t.Context(), room, question, "remember that my sister's name is Ruth"))
	for m.calls.Load() == calls {
		time.Sleep(5 * time.Millisecond)
	}
	bot.kill()
	bot.start(t, "")
	inPlace("Ruth")
	must(t, you.React(t.Context(), room, question, "🔁"))
	second := ask(t, you, room, "rehearse: long 5")
	if second.ID == answer.ID { // the edit came first
		second = hear(t, you, room)
	}
	must(t, you.Redact(t.Context(), room, question))
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		raw, err := you.Raw(t.Context(), room, answer.ID)
		must(t, err)
		if !bytes.Contains(raw, []byte("ciphertext")) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the answer is still there: %s", raw)
		}
	}
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		memories, err := os.ReadFile(bot.data("MEMORIES.txt"))
		if err != nil || !strings.Contains(string(memories), "Ruth") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("MEMORIES.txt = %q", memories)
		}
	}
	if e := ask(t, you, room, "what do you know about my sister?"); strings.Contains(e.Body, "Ruth") {
		t.Errorf("after it was taken back: %q", e.Body)
	}
}
