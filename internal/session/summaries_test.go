package session

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
)

// TestSummariesFollow: after six compactions what is locked is there, whoever wrote the summary,
// !summary shows it, and the newest is taken back to the letter.
func TestSummariesFollow(t *testing.T) {
	for name, write := range map[string]func() string{
		"a model": func() string { return "They spoke of the weather, the garden and its beds." },
		"none":    func() string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(t, t.TempDir(), 6000)
			w.summarising(t, func(string) string { return write() })
			var before history.Compaction
			for round := 1; len(w.compactions(t)) < 6; round++ {
				w.say(t, fmt.Sprint("$d", round), fmt.Sprintf("DECISION_LOCKED: bed %d is for the peas | it is sunny", round))
				for have := len(w.compactions(t)); len(w.compactions(t)) == have; {
					before = w.compacted(t)
					w.chatter(t, fmt.Sprint("c", len(w.script.asked())), 1)
				}
			}
			got := w.say(t, "$s", "!summary").Text
			for round := 1; round <= 6; round++ {
				if want := fmt.Sprintf("bed %d is for the peas", round); !strings.Contains(w.lastPrompt(t), want) || !strings.Contains(got, want) {
					t.Errorf("%q is lost: %s", want, got)
				}
			}
			w.say(t, "$u", "!undo compact")
			if now := w.compacted(t); now.ID != before.ID || now.Text() != before.Text() {
				t.Errorf("it was\n%s\nand is\n%s", before.Text(), now.Text())
			}
			if got := w.say(t, "$s2", "!summary").Text; !strings.HasSuffix(got, before.Text()) {
				t.Errorf("after it was taken back: %s", got)
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
