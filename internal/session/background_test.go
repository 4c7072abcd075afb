package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"reverie/internal/history"
)

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
