package session

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/task"
)

// tooMany gives the room more tasks than a prompt has room for.
func (w *world) tooMany(t *testing.T) {
	t.Helper()
	for i := range 40 {
		_, err := w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", Label: inDM.Label(), User: owner, Content: fmt.Sprintf("%d: %s", i, strings.Repeat("do it ", 40)), Priority: 5})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// requests waits until the model was asked n times, and returns all requests.
func (w *world) requests(t *testing.T, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if got := w.script.asked(); len(got) >= n || time.Now().After(deadline) {
			if len(got) != n {
				t.Fatalf("the model was asked %d times, want %d", len(got), n)
			}
			return got
		}
	}
}

// idle waits until the room has nothing to do: what is asked in the background
// is stored then.
func (w *world) idle(t *testing.T, messages int) []history.Message {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		past, err := w.cfg.History.Load(t.Context(), "!dm")
		if err != nil {
			t.Fatal(err)
		}
		if len(past) >= messages || time.Now().After(deadline) {
			if len(past) != messages {
				t.Fatalf("%d messages, want %d: %+v", len(past), messages, past)
			}
			return past
		}
	}
}

// TestCondense: when the tasks have outgrown the prompt, the model is asked to tidy
// them up, once a day, after the person has the answer; the room sees nothing of it.
func TestCondense(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "tidied")
	var later atomic.Int64
	w.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	w.tooMany(t)
	if got := w.say(t, "$1", "hi"); got.Text != "hello" {
		t.Errorf("answer = %+v", got)
	}
	asked := w.requests(t, 2)
	if !strings.Contains(asked[1], ", system event: component too large]\\nThe open tasks") || !strings.Contains(asked[1], "Tidy them up with the task tool") || strings.Contains(asked[0], "Tidy them up") {
		t.Errorf("second request: %s", asked[1])
	}
	past := w.idle(t, 4)
	if past[3].Role != llm.Assistant || past[3].Text != "tidied" {
		t.Errorf("history ends with %+v", past[3])
	}
	if n := w.room.count(); n != 1 {
		t.Errorf("%d things were said in the room", n)
	}
	w.say(t, "$2", "and now?")
	time.Sleep(200 * time.Millisecond) // time for one too many to be asked
	w.say(t, "$3", "and now?")
	time.Sleep(200 * time.Millisecond)
	if n := len(w.script.asked()); n != 4 {
		t.Errorf("asked %d times: it must be once a day", n)
	}
	later.Store(int64(25 * time.Hour))
	w.say(t, "$4", "good morning")
	w.requests(t, 6)
}

// TestCondenseGivesWay: a message that comes while the model tidies up is answered
// at once, and !retry repeats what the person wrote.
func TestCondenseGivesWay(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello")
	w.tooMany(t)
	block := make(chan struct{})
	defer close(block)
	hang := func(until chan struct{}) {
		w.script.mu.Lock()
		defer w.script.mu.Unlock()
		w.script.block = until
	}
	w.room.onSay = func(m Outgoing) { // from the answer on
		if m.ID == "re:$1" && !m.Draft {
			hang(block)
		}
	}
	w.say(t, "$1", "hi")
	w.requests(t, 2)
	hang(nil)
	if got := w.say(t, "$2", "are you there?"); got.Text != "fine" {
		t.Errorf("answer = %+v", got)
	}
	if got := w.say(t, "$3", "!retry"); got.Text != "fine" || got.Notice {
		t.Errorf("retry = %+v", got)
	}
	asked := w.script.asked()
	if last := asked[len(asked)-1]; !strings.Contains(last, "are you there?") {
		t.Errorf("retried: %s", last)
	}
}

// TestCondenseOnlyWithATool: what no tool can make shorter, nobody is asked about.
func TestCondenseOnlyWithATool(t *testing.T) {
	w := newWorld(t, t.TempDir())
	me := memory.Access{Actor: owner, Scopes: []memory.Scope{memory.Private(owner)}}
	for i := range 80 {
		e, _, err := w.cfg.Memory.Append(t.Context(), memory.Private(owner), fmt.Sprintf("%d: %s", i, strings.Repeat("fact ", 40)))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.cfg.Memory.Pin(t.Context(), me, e.ID, true); err != nil { // and stays as it is
			t.Fatal(err)
		}
	}
	w.say(t, "$1", "hi")
	w.say(t, "$2", "hi again")
	time.Sleep(200 * time.Millisecond) // time for one too many to be asked
	if n := len(w.script.asked()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
