package session

import (
	"strings"
	"testing"
)

// TestSteering: a model that goes astray is told so; no person ever reads it, in an
// answer or a command, and it is not kept as anybody's words.
func TestSteering(t *testing.T) {
	w := newWorld(t, t.TempDir(), "I'll remember that.", `{"entry":""}`, `{"entry":""}`, "done")
	shown := &seen{}
	w.room.onSay = shown.say
	w.say(t, "$1", "Remember that I like tea")
	w.say(t, "$2", "So?")
	for i, c := range []string{"!prompt", "!status", "!memory", "!tasks", "!help", "!whoami", "!mode"} {
		w.say(t, "$c"+string(rune('a'+i)), c)
	}
	said := strings.Join(shown.take(), "\n")
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
		lacks(t, said, text)
	}
	past := w.past(t)
	failed, tails := 0, ""
	for _, m := range past {
		if m.Failed {
			failed++
		}
		tails += m.Tail
		lacks(t, m.Text+m.Header, words...)
	}
	if failed != 2 || !strings.Contains(tails, words[0]) {
		t.Errorf("%d failed results; tails %q", failed, tails)
	}
}
