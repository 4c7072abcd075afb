package session

import (
	"fmt"
	"strings"
	"testing"
)

// TestUndoCompact: !undo compact gives the model back what was said, once, and the
// conversation goes on; it is told so, and so is why it cannot be.
func TestUndoCompact(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.summarising(t, func(string) string { return "The owner said hello, and that it is nice." })
	notice(t, w.say(t, "$0", "!undo compact"), "nothing to take back")
	w.say(t, "$1", "hello there")
	w.chatter(t, "a", 6)
	w.say(t, "$2", "!compact")
	w.say(t, "$3", "and now?")
	if got := w.lastPrompt(t); strings.Contains(got, "hello there") {
		t.Fatalf("nothing was compacted: %s", got)
	}
	if got := w.say(t, "$4", "!undo Compact"); !got.Notice || !strings.HasPrefix(got.Text, "Taken back: 4 messages") {
		t.Errorf("taken back: %+v", got)
	}
	wants(t, w.say(t, "$5", "!undo compact").Text, "taken back already")
	wants(t, w.say(t, "$6", "!summary").Text, "Nothing of this conversation is summarised")
	for i := range 2 {
		w.say(t, fmt.Sprint("$7", i), "go on")
		got := w.lastPrompt(t)
		if !strings.Contains(got, "hello there") || strings.Contains(got, "that it is nice") || strings.Index(got, "hello there") > strings.Index(got, "and now?") {
			t.Errorf("prompt: %s", got)
		}
	}
	w.say(t, "$8", "!compact")
	if got := w.say(t, "$9", "!undo compact"); !strings.HasPrefix(got.Text, "Taken back: ") {
		t.Errorf("another one: %+v", got)
	}
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
