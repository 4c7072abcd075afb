package session

import (
	"strings"
	"testing"
)

// TestThink: the level is the room's, survives a restart, goes to the model as a
// parameter, and in words when the model refused that.
func TestThink(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	notice(t, w.say(t, "$0", "!think"), "as the model likes")
	w.say(t, "$1", "hello")
	wants(t, w.say(t, "$2", "!think loud").Text, "do not know that level")
	equal(t, w.say(t, "$3", "!think HIGH").Text, "Thinking is set to high in this room.")
	w.say(t, "$4", "and now?")
	w.deliver(t, Inbound{ID: "$5", Room: "!other", Sender: owner, Text: "and here?", Private: true})
	asked := w.script.asked()
	for i, want := range []bool{false, true, false} {
		if got := strings.Contains(asked[i], `"reasoning_effort":"high"`); got != want {
			t.Errorf("request %d has the level: %v, want %v", i, got, want)
		}
	}
	w.stop()
	w = newWorld(t, dir)
	wants(t, w.say(t, "$6", "!think").Text, "set to high")
	wants(t, w.say(t, "$7", "!think default").Text, "as the model likes")
	w.say(t, "$8", "and now?")
	if asked := w.script.asked(); strings.Contains(asked[len(asked)-1], "reasoning_effort") {
		t.Errorf("the level is still sent: %s", asked[len(asked)-1])
	}
}

// TestThinkInWords: a model that takes no such parameter reads the level in the
// prompt, and reads that it is over.
func TestThinkInWords(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.refuse = "reasoning_effort"
	w.say(t, "$1", "!think low")
	w.say(t, "$2", "hello") // the model is found out
	w.say(t, "$3", "and now?")
	asked := w.script.asked()
	last := asked[len(asked)-1]
	if strings.Contains(last, "reasoning_effort") || !strings.Contains(last, "Think briefly before you answer.") {
		t.Errorf("request: %s", last)
	}
	w.say(t, "$4", "!think default")
	w.say(t, "$5", "and now?")
	asked = w.script.asked()
	wants(t, asked[len(asked)-1], "Think as much as you find right again.")
}
