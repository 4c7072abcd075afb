package session

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/task"
)

// A room takes the place of another one: the next answer there knows what was
// said, remembered, planned and set in the old one, and nobody else does. What was set in the
// new one stays.
// Holds F31, M54.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, "Yes.\n"+reported)
	say := func(room, text string) string {
		t.Helper()
		return w.deliver(t, Inbound{Room: room, Sender: owner, Text: text, At: time.Now()}).Text
	}
	ask := func(room, text string) string {
		t.Helper()
		say(room, text)
		return w.lastAsked()
	}
	ask("!old", "the password of the gate is Orinoco")
	w.known(t, memory.Room("!old"), "Jana likes herons")
	w.addTask(t, task.Task{Room: "!old", User: owner, Content: "water the cactus"})
	group := w.directScope("!old", "@bob:x")
	group.Private = false
	w.calls(t, group, "add_skill", "skill_name", "minutes", "summary", "Who writes them", "documentation", "Bob.")
	say("!old", "!mode developer")
	say("!old", "!think low")
	say("!old", "!config threads off")
	must(t, Settings{w.cfg.DB}.Set(t.Context(), "!new", SettingThreads, "always", owner, time.Now()))
	for range 2 { // it can be repeated
		must(t, w.Move(t.Context(), "!old", "!new"))
	}
	prompt := ask("!new", "what do you know?")
	for _, want := range []string{"Orinoco", "herons", "cactus", "CURRENT GOAL: Implement user authentication system"} {
		if n := strings.Count(prompt, want); n != 1 {
			t.Errorf("the new room's prompt has %d times %q", n, want)
		}
		if strings.Contains(ask("!other", "and you?"), want) {
			t.Errorf("another room's prompt has %q", want)
		}
	}
	if prompt = ask("!old", "is anybody here?"); strings.Contains(prompt, "Orinoco") || strings.Contains(prompt, "cactus") || w.goals(t, "!old") != "" {
		t.Error("the old room goes on as if nothing had happened")
	}
	for command, want := range map[string]string{"!mode": "Mode: developer, since", "!think": "set to low", "!config threads": "It is `always`", "!skills": "`minutes`"} {
		wants(t, say("!new", command), want)
	}
	lacks(t, say("!old", "!skills"), "minutes")
}

// The bot is thrown out of a room, or a message is taken back, while its answer
// is being made: no further request to the model, no reply, no complaint.
// Holds F29.
func TestWithdrawnWhileAnswering(t *testing.T) {
	w := newWorld(t, t.TempDir(), `{"content":"something"}`, "never asked for")
	w.script.block = make(chan struct{})
	must(t, w.Deliver(t.Context(), Inbound{ID: "$1", Room: "!dm", Sender: owner, Text: "remember it", Private: true, At: time.Now()}))
	for len(w.script.asked()) == 0 {
		time.Sleep(time.Millisecond)
	}
	w.room.mu.Lock()
	w.room.gone = map[string]bool{"$1": true}
	w.room.mu.Unlock()
	close(w.script.block)
	equal(t, <-w.room.handled, "$1")
	equal(t, len(w.script.asked()), 1)
	equal(t, w.room.count(), 0)
	w.room.mu.Lock()
	w.room.gone = nil
	w.room.mu.Unlock()
	equal(t, w.say(t, "$2", "next").Text, "never asked for")
}
