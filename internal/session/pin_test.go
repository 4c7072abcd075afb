package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/task"
)

// TestPin: the task that was named last is pinned, while it is active; a list names
// none, and a reminder is not worked on.
func TestPin(t *testing.T) {
	w := newWorld(t, t.TempDir())
	ids := map[string]string{}
	for _, it := range []task.Task{{Content: "paint"}, {Content: "shed"}, {Content: "stretch", Schedule: &task.Schedule{Type: "daily", At: "09:00"}}} {
		it.Room, it.Label = "!dm", inDM.Label()
		added := result(w.cfg.Tasks.Add(t.Context(), it))(t)
		ids[it.Content] = added.ID
	}
	read := func(id, text string) string {
		t.Helper()
		w.say(t, id, text)
		_, tail, _ := strings.Cut(w.lastAsked(), text)
		return tail
	}
	title, first, second := "Current Task", "paint", "shed"
	if ids[first] < ids[second] { // so that of both, the first in order is not the one that is pinned
		first, second = second, first
	}
	lacks(t, read("$1", "What is there?"), title)
	wants(t, read("$2", "Go on with #"+ids[first]), title, first)
	for i, text := range []string{"Hello.", ids[first] + " or " + ids[second], "And #" + ids["stretch"], "And task_aaaaaaaa"} {
		lacks(t, read(fmt.Sprint("$3", i), text), title)
	}
	wants(t, read("$4", "Now #"+ids[second]), title, second)
	result(w.cfg.Tasks.Complete(t.Context(), inDM, ids[second], "it is done"))(t)
	wants(t, read("$5", "Hello again."), title, first)
}

// TestPinSurvives: what is worked on stays pinned when a summary takes the place of the
// message that named it, in the next start and in the room that takes the place of this
// one, until it is done; a new conversation begins without.
func TestPinSurvives(t *testing.T) {
	w := newWorld(t, t.TempDir())
	added := result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", Label: inDM.Label(), Content: "paint the shed"}))(t)
	pinned := func(id, room string) bool {
		t.Helper()
		w.deliver(t, Inbound{ID: id, Room: room, Sender: owner, Text: "How far are we? " + id, Private: true, At: time.Now()})
		_, tail, _ := strings.Cut(w.lastAsked(), "How far are we? "+id)
		return strings.Contains(tail, "Current Task") && strings.Contains(tail, "paint the shed")
	}
	w.say(t, "$1", "Go on with #"+added.ID)
	for i := range 12 {
		w.say(t, fmt.Sprint("$talk", i), "The weather is fine, and so it goes on and on.")
	}
	if m := w.say(t, "$2", "!compact"); len(w.compactions(t)) != 1 {
		t.Fatalf("not compacted: %q", m.Text)
	}
	past := w.past(t)
	for _, m := range past {
		if strings.Contains(m.Text, added.ID) {
			t.Fatalf("the message that names the task is there still; the test shows nothing: %+v", m)
		}
	}
	if !pinned("$3", "!dm") {
		t.Error("not pinned after the compaction")
	}
	w.restart(t)
	must(t, w.Move(t.Context(), "!dm", "!next"))
	if !pinned("$4", "!next") {
		t.Error("not pinned in the room that took its place")
	}
	w.deliver(t, Inbound{ID: "$5", Room: "!next", Sender: owner, Text: "!new", Private: true, At: time.Now()})
	if pinned("$6", "!next") {
		t.Error("pinned in a new conversation")
	}
}
