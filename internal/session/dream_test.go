package session

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/task"
)

// TestDreamCommand: owners have it dream, ask how it went and take it back; others do not.
func TestDreamCommand(t *testing.T) {
	w := newWorld(t, t.TempDir())
	wants(t, w.say(t, "$1", "!dream").Text, "`bot dream`")
	woken := 0
	w.cfg.Dreams = &Dreams{Wake: func() { woken++ },
		Status: func(context.Context, i18n.Say) (string, error) { return "slept well", nil }, Undo: func(context.Context, i18n.Say) (string, error) { return "taken back", nil }}
	for text, want := range map[string]string{"!dream": "as soon as nobody waits", "!dream Status": "slept well", "!dream undo": "Taken back.", "!dream on": "`!dream status`"} {
		notice(t, w.deliver(t, Inbound{ID: "$own" + text, Room: "!own", Sender: owner, Text: text, Private: true, At: time.Now()}), want)
		if got := w.deliver(t, Inbound{ID: "$other" + text, Room: "!own", Sender: "@other:example.org", Text: text, Private: true, At: time.Now()}); !strings.Contains(got.Text, "Only my owner") {
			t.Errorf("%s by another: %q", text, got.Text)
		}
	}
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
}

// TestTidy: what has outgrown its cap is named to whoever dreams, and the model is told nothing.
func TestTidy(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "good morning")
	var parts []string
	w.cfg.Dreams = &Dreams{Tidy: func(part string) { parts = append(parts, part) }}
	w.say(t, "$1", "hi")
	if len(parts) > 0 {
		t.Errorf("with room for all: %q", parts)
	}
	for i := range 40 {
		task := task.Task{Room: "!dm", Label: inDM.Label(), User: owner, Content: fmt.Sprintf("%d: %s", i, strings.Repeat("do it ", 40)), Priority: 5}
		result(w.cfg.Tasks.Add(t.Context(), task))(t)
	}
	w.say(t, "$2", "hi again")
	if strings.Join(parts, " ") != "tasks" {
		t.Errorf("too many tasks: %q", parts)
	}
	equal(t, len(w.script.asked()), 2)
}
