package session

import (
	"strings"
	"sync"
	"testing"

	"reverie/internal/llm"
)

// TestSteering: a model that goes astray is told so; no person ever reads it, in an
// answer or a command, and it is not kept as anybody's words.
func TestSteering(t *testing.T) {
	w := newWorld(t, t.TempDir(), "I'll remember that.", `{"entry":""}`, `{"entry":""}`, "done")
	var mu sync.Mutex
	var said strings.Builder
	w.room.onSay = func(m Outgoing) {
		mu.Lock()
		defer mu.Unlock()
		said.WriteString(m.Text + "\n")
	}
	w.say(t, "$1", "Remember that I like tea")
	w.say(t, "$2", "So?")
	for i, c := range []string{"!prompt", "!status", "!memory", "!tasks", "!help", "!whoami", "!mode"} {
		w.say(t, "$c"+string(rune('a'+i)), c)
	}
	words := []string{"asks you to keep something", "no tool was called", "You made this call before", "Several calls in a row failed"}
	asked := w.script.asked()
	if len(asked) != 4 {
		t.Fatalf("%d requests", len(asked))
	}
	for i, text := range words {
		for n, request := range asked {
			if want := n >= []int{0, 1, 3, 3}[i]; strings.Contains(request, text) != want {
				t.Errorf("request %d, %q: want %v", n, text, want)
			}
		}
		if strings.Contains(said.String(), text) {
			t.Errorf("a person read %q in\n%s", text, said.String())
		}
	}
	past := w.past(t)
	failed, tails := 0, ""
	for _, m := range past {
		if m.Failed {
			failed++
		}
		if m.Failed != (m.Role == llm.Tool) {
			t.Errorf("failed %v: %+v", m.Failed, m)
		}
		tails += m.Tail
		for _, text := range words {
			if strings.Contains(m.Text+m.Header, text) {
				t.Errorf("%q is kept as somebody's words: %+v", text, m)
			}
		}
	}
	if failed != 2 || !strings.Contains(tails, words[0]) {
		t.Errorf("%d failed results; tails %q", failed, tails)
	}
}
