package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// A room takes the place of another one: the next answer there knows what was
// said, remembered and planned in the old one, and nobody else does.
// Holds F31, M54.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	ask := func(room, id, text string) string {
		t.Helper()
		w.deliver(t, Inbound{ID: id, Room: room, Sender: owner, Text: text, At: time.Now()})
		return w.lastAsked()
	}
	ask("!old", "$1", "the password of the gate is Orinoco")
	if _, _, err := w.cfg.Memory.Add(t.Context(), memory.Entry{Scope: memory.Room("!old"), Text: "Jana likes herons", Source: memory.Assistant, Integrity: trust.User}, "assistant"); err != nil {
		t.Fatal(err)
	}
	result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!old", Label: inGroup("!old").Label(), User: owner, Content: "water the cactus"}))(t)
	for range 2 { // it can be repeated
		must(t, w.Move(t.Context(), "!old", "!new"))
	}
	var counted int
	if err := w.cfg.DB.QueryRow(`SELECT count(*) FROM steering WHERE room = '!new'`).Scan(&counted); err != nil || counted != 1 {
		t.Errorf("what was counted stays behind: %d, %v", counted, err)
	}
	prompt := ask("!new", "$2", "what do you know?")
	for _, want := range []string{"Orinoco", "herons", "cactus"} {
		if n := strings.Count(prompt, want); n != 1 {
			t.Errorf("the new room's prompt has %d times %q", n, want)
		}
		if strings.Contains(ask("!other", "$3"+want, "and you?"), want) {
			t.Errorf("another room's prompt has %q", want)
		}
	}
	if prompt = ask("!old", "$4", "is anybody here?"); strings.Contains(prompt, "Orinoco") || strings.Contains(prompt, "cactus") {
		t.Error("the old room goes on as if nothing had happened")
	}
	if file, err := os.ReadFile(filepath.Join(dir, w.cfg.Memory.File(memory.Room("!old")))); err != nil || !strings.Contains(string(file), "herons") {
		t.Errorf("the old room's file: %q, %v", file, err)
	}
	rooms, err := w.Rooms(t.Context())
	if err != nil || !strings.Contains(strings.Join(rooms, " "), "!new") {
		t.Errorf("rooms %q, %v", rooms, err)
	}
}

// The bot is thrown out of a room, or a message is taken back, while its answer
// is being made: no further request to the model, no reply, no complaint.
// Holds F29.
func TestWithdrawnWhileAnswering(t *testing.T) {
	w := newWorld(t, t.TempDir(), `{"content":"something"}`, "never asked for")
	w.script.block = make(chan struct{})
	must(t, w.Deliver(t.Context(), Inbound{ID: "$1", Room: "!dm", Sender: owner, Text: "remember it", Private: true, At: time.Now()}))
	for len(w.script.asked()) == 0 {
		time.Sleep(time.Millisecond)
	}
	w.room.mu.Lock()
	w.room.gone = map[string]bool{"$1": true}
	w.room.mu.Unlock()
	close(w.script.block)
	if id := <-w.room.handled; id != "$1" {
		t.Errorf("handled %s", id)
	}
	if n := len(w.script.asked()); n != 1 {
		t.Errorf("%d requests to the model, want one", n)
	}
	if n := w.room.count(); n != 0 {
		t.Errorf("%d replies: %+v", n, w.room.said("$1"))
	}
	w.room.mu.Lock()
	w.room.gone = nil
	w.room.mu.Unlock()
	if got := w.say(t, "$2", "next"); got.Text != "never asked for" {
		t.Errorf("the next message is answered with %+v", got)
	}
}
