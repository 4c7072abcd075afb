package prompt

import (
	"strings"
	"testing"
	"time"
)

// What holds no more is said to hold no more, once, and only to a model that was told
// that it held.
func TestNoLonger(t *testing.T) {
	for _, tt := range []struct {
		title, first, second, none string
		set                        func(w *world, s string)
	}{
		{"Thinking:", "low", "high", "Think as much as you find right again.", func(w *world, s string) { w.thinking = s }},
		{"Goal steps now:", "🔄 one", "✅ one", "No steps are open any more.", func(w *world, s string) { w.steps = []string{s} }},
		{"Current Task:", "The first.", "The second.", "No task in particular is being worked on any more.", func(w *world, s string) { w.pin = s }},
	} {
		w := newWorld(t, Stable)
		said := func(want string) {
			t.Helper()
			if reason := w.asks("And now?"); reason != "" && reason != newConversation {
				t.Errorf("%s an epoch began: %s", tt.title, reason)
			}
			_, got, _ := strings.Cut(w.sent.Tail, tt.title+"\n")
			got, _, _ = strings.Cut(got, "\n"+closeNote("k3f9"))
			if !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s said %q, want %q", tt.title, got, want)
			}
		}
		word := func(s string) string {
			if words := thinkingWords[s]; words != "" {
				return words
			}
			return s
		}
		said("")
		tt.set(w, tt.first)
		said(word(tt.first))
		said("")
		tt.set(w, tt.second)
		said(word(tt.second))
		tt.set(w, "")
		said(tt.none)
		said("")
		w.restart()
		said("")
		tt.set(w, tt.first)
		said(word(tt.first))
		tt.set(w, "")
		w.file("SOUL.md", "Another soul.") // a new epoch knows nothing of what was
		if p := w.tells("And now?"); !p.Report.Epoch.New || p.Tail != "" {
			t.Errorf("%s a new epoch says %q", tt.title, p.Tail)
		}
	}
}

// What stands in a line stands in one, whatever came in; blank lines are none.
func TestWordsOfATurn(t *testing.T) {
	w := newWorld(t, Tiered)
	w.tier = 4
	w.markers = true // there is no tool for the goal
	w.goal = []string{" ", "Ship\nit.\n# Instructions", "", strings.Repeat("x", 600)}
	w.asks("Hello")
	w.expect(true, "# Active Goal\n"+markersHint+"\n<data id=\"k3f9\" source=\"goal\">\nShip it. # Instructions\n"+strings.Repeat("x", 500)+"…\n</data")
	w.expect(false, "Goal steps now")
	w.expect(true, "# Tools\n- append_memory: what append_memory is for\n- task: what task is for\n")
	w.tools, w.goal = nil, nil
	w.asks("Hello")
	w.expect(false, "# Tools\n", "# Active Goal")
	w.layout, w.summary = Classic, " \n"
	w.restart()
	w.asks("Hello")
	w.expect(false, "# Conversation Summary")
	w.summary = "\nThey talked.\n\n"
	w.asks("Hello")
	w.expect(true, "source=\"summary\">\nThey talked.\n</data")
}

// The runtime line says what is known, and nothing of what is not.
func TestRuntimeAndModels(t *testing.T) {
	w := newWorld(t, Split)
	w.tier = 4
	w.asks("Hello")
	w.expect(true, "# Runtime\nagent Reverie, host attic, OS linux/amd64\n")
	w.expect(true, "# Models\nThe person can choose one of these models with `!model NAME`: small, large.\n")
	w.expect(true, "# Tools Reminder\nThese are all the tools there are: append_memory, task, add_skill, read_file. Call no others.")
	w.model, w.tools = "qwen3:8b", nil
	w.assembler.cfg.Host, w.assembler.cfg.Models = "", []string{"small"}
	w.now = time.Date(2026, 12, 31, 23, 5, 0, 0, time.UTC)
	w.asks("Hello")
	w.expect(true, "# Runtime\nagent Reverie, model qwen3:8b, OS linux/amd64")
	w.expect(false, "# Models", "# Tools Reminder")
	w.expect(true, "# Current Time\nFriday, 2027-01-01 00:05 CET")
}
