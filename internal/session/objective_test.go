package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/task"
)

// objectivePause is how long nobody has said anything when a model may be asked: messages
// that follow each other come sooner. oneTooMany is time for one question too many.
const (
	objectivePause = 150 * time.Millisecond
	oneTooMany     = 3 * objectivePause
)

// asksObjective reports whether a request asks which task is worked on.
func asksObjective(body string) bool { return strings.Contains(body, "Which of these tasks") }

// withObjective has a model asked which task is worked on, which gives the answer that
// is set; asked counts the questions.
func (w *world) withObjective(t *testing.T) (answer *string, asked func() []string) {
	t.Helper()
	w.cfg.Objective, w.cfg.Quiet = "harvest", objectivePause
	answer = new(string)
	w.script.reply = func(body string) (string, bool) { return *answer, asksObjective(body) }
	return answer, func() (out []string) {
		for _, body := range w.script.asked() {
			if asksObjective(body) {
				out = append(out, body)
			}
		}
		return out
	}
}

// pinsIn reports whether the end of a request says what is worked on.
func pinsIn(tail string) bool {
	return strings.Contains(tail, `Current Task:\n`) && !strings.Contains(tail, `Current Task:\nNo task in particular`)
}

func (w *world) addTask(t *testing.T, it task.Task) string {
	t.Helper()
	if it.Room == "" {
		it.Room = "!dm"
	}
	it.Label = callerIn(it.Room).Label()
	added := result(w.cfg.Tasks.Add(t.Context(), it))(t)
	return added.ID
}

// talk says n messages that name nothing.
func (w *world) talk(t *testing.T, n int) {
	t.Helper()
	for range n {
		w.say(t, fmt.Sprint("$talk", time.Now().UnixNano()), "The weather is fine.")
	}
}

func (w *world) pinOf(t *testing.T) pinRow {
	t.Helper()
	p := result(newSession(w.Manager, "!dm").readPin(t.Context()))(t)
	return p
}

// TestObjective: after some messages a model is asked once which task the room works on,
// among those of the person alone; it is pinned until it says otherwise, somebody names
// another one, or it is done. Nothing comes of an answer that is not one of these tasks.
func TestObjective(t *testing.T) {
	w := newWorld(t, t.TempDir())
	answer, asked := w.withObjective(t)
	others := []string{
		w.addTask(t, task.Task{Content: "theirs", User: "@ann:x"}), w.addTask(t, task.Task{Content: "elsewhere", Room: "!other", User: owner}),
		w.addTask(t, task.Task{Content: "stretch", Schedule: &task.Schedule{Type: "daily", At: "09:00"}}),
	}
	w.talk(t, 2*objectiveEvery) // there is nothing to choose from
	time.Sleep(oneTooMany)
	equal(t, len(asked()), 0)
	paint, shed := w.addTask(t, task.Task{Content: "paint"}), w.addTask(t, task.Task{Content: "build the shed", User: owner})
	says := func(want string) { // what the next request says newly; "" = that no task is
		t.Helper()
		id := fmt.Sprint("$", time.Now().UnixNano())
		w.say(t, id, "And now? "+id)
		for _, body := range slices.Backward(w.script.asked()) {
			if _, tail, ok := strings.Cut(body, "And now? "+id); ok && !asksObjective(body) {
				if pinsIn(tail) != (want != "") || !strings.Contains(tail, want) {
					t.Errorf("want %q pinned: %.500s", want, tail)
				}
				return
			}
		}
	}
	before, said := "", 0
	for i, c := range []struct{ answer, pinned string }{{"#" + shed, shed}, {"500", shed}, {"It is " + paint, shed}, {paint + " task_aaaaaaaa", shed}, {others[0], shed},
		{"None.", ""}, {paint, paint}, {shed, shed}} {
		if i == 2 {
			w.restart(t)
		}
		*answer = c.answer
		w.talk(t, objectiveEvery-said)
		until(t, "it is asked", func() bool { return len(asked()) == i+1 })
		until(t, "the answer is kept", func() bool { return w.pinOf(t).id == c.pinned })
		if said = 0; c.pinned != before {
			said = 1
			says(map[string]string{shed: "build the shed", paint: "paint"}[c.pinned])
		}
		before = c.pinned
	}
	equal(t, len(asked()), 8)
	for _, id := range others {
		lacks(t, asked()[0], id)
	}
	w.say(t, "$named", "Now #"+paint)
	equal(t, w.pinOf(t).id, paint)
	w.say(t, "$back", "Back to #"+shed)
	w.deliver(t, Inbound{ID: "$ann", Room: "!dm", Sender: "@ann:x", Text: "Hello from Ann.", At: time.Now()})
	if _, tail, _ := strings.Cut(w.lastAsked(), "Hello from Ann."); pinsIn(tail) {
		t.Errorf("pinned for somebody else: %s", tail)
	}
	result(w.cfg.Tasks.Complete(t.Context(), inDM, shed, "it stands"))(t)
	w.addTask(t, task.Task{Content: "sweep"})
	says("")
}

// TestObjectiveGivesWay: a message that comes while the model is asked is answered at
// once and changes nothing.
func TestObjectiveGivesWay(t *testing.T) {
	w := newWorld(t, t.TempDir())
	_, asked := w.withObjective(t)
	w.addTask(t, task.Task{Content: "paint"})
	w.script.hold = func(body string) <-chan struct{} {
		if asksObjective(body) {
			return make(chan struct{})
		}
		return nil
	}
	w.talk(t, objectiveEvery)
	until(t, "it is asked", func() bool { return len(asked()) == 1 })
	equal(t, w.say(t, "$1", "are you there?").Text, "fine")
	equal(t, w.pinOf(t).id, "")
}
