package session

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
)

// TestSummariesFollow: after six compactions what is locked is there, whoever wrote the summary,
// and !summary shows it.
func TestSummariesFollow(t *testing.T) {
	for name, write := range map[string]func() string{
		"a model": func() string { return "They spoke of the weather, the garden and its beds." },
		"none":    func() string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(t, t.TempDir(), 6000)
			w.summarising(t, func(string) string { return write() })
			for round := 1; len(w.compactions(t)) < 6; round++ {
				w.say(t, fmt.Sprint("$d", round), fmt.Sprintf("DECISION_LOCKED: bed %d is for the peas | it is sunny", round))
				for have := len(w.compactions(t)); len(w.compactions(t)) == have; {
					w.chatter(t, fmt.Sprint("c", len(w.script.asked())), 1)
				}
			}
			got := w.say(t, "$s", "!summary").Text
			for round := 1; round <= 6; round++ {
				if want := fmt.Sprintf("bed %d is for the peas", round); !strings.Contains(w.lastPrompt(t), want) || !strings.Contains(got, want) {
					t.Errorf("%q is lost: %s", want, got)
				}
			}
		})
	}
}

// compacted is the compaction that counts in the room.
func (w *world) compacted(t testing.TB) history.Compaction {
	t.Helper()
	c := result(w.cfg.History.Compacted(t.Context(), "!dm"))(t)
	return c
}

// TestRecoveredNote: the first message behind a summary tells the model to be careful with
// it, once.
func TestRecoveredNote(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	told := func() int { return strings.Count(w.lastPrompt(t), "Older messages were just replaced by a summary") }
	for len(w.compactions(t)) == 0 {
		if told() != 0 {
			t.Fatal("told before there is a summary")
		}
		w.chatter(t, fmt.Sprint("a", len(w.script.asked())), 1)
	}
	equal(t, told(), 1)
	w.chatter(t, "b", 2)
	if n := told(); n != 1 { // it stays where it was said, and is not said again
		t.Errorf("told %d times two messages later", n)
	}
}
