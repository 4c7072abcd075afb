package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/task"
)

// A room takes the place of another one: the next answer there knows what was
// said, also in threads, remembered, planned and set in the old one, and nobody else does. What was set
// in the new one stays.
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
	w.asks(t, in("$thread", "!old", "$root", "which brush? bristle"))
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
	holds(t, "the thread", w.asks(t, in("$on", "!new", "$root", "go on")), []string{"Orinoco", "bristle"})
	holds(t, "the old room's thread", w.asks(t, in("$back", "!old", "$root", "go on")), nil, "Orinoco", "bristle")
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

// TestBackgroundGivesWay: work in the background begins when nobody waits for an answer,
// and ends at once when somebody writes, in whatever room.
func TestBackgroundGivesWay(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.cfg.Quiet = time.Millisecond
	work, done, err := w.Background(t.Context())
	if err != nil || work.Err() != nil {
		t.Fatalf("nobody waits, and it does not begin: %v", err)
	}
	w.script.mu.Lock()
	w.script.block = make(chan struct{})
	w.script.mu.Unlock()
	must(t, w.Deliver(t.Context(), Inbound{ID: "$1", Room: "!dm", Sender: owner, Text: "hello", Private: true, At: time.Now()}))
	if work.Err() == nil {
		t.Error("somebody wrote, and it goes on")
	}
	done()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := w.Background(ctx); err == nil {
		t.Error("a question waits for its answer, and it begins")
	}
	close(w.script.block)
	<-w.room.handled
	_, done, err = w.Background(t.Context())
	must(t, err)
	done()
}

// TestLeavingIsTold: before messages leave the prompt, at !new and at a compaction, whoever
// harvests hears of it, and nobody waits for that.
func TestLeavingIsTold(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "", 4096)
	var mu sync.Mutex
	var told []string
	w.cfg.Leaving = func(room string) {
		mu.Lock()
		defer mu.Unlock()
		past, err := w.cfg.History.Load(context.Background(), history.Talk(room))
		told = append(told, fmt.Sprintf("%s %v %v", room, len(past) > 0, err))
	}
	w.script.forever = "We spoke of a long list of things, and of the garden that Anna keeps."
	for i := range 10 {
		w.say(t, fmt.Sprintf("$%d", i), "A message of some length, with words in it. And a few more of them.")
	}
	w.say(t, "$compact", "!compact")
	w.say(t, "$again", "And one more.")
	w.say(t, "$new", "!new")
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"!dm true <nil>", "!dm true <nil>"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
