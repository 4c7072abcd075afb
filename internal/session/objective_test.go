package session

import (
	"fmt"
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

// answered waits until n questions are asked and id is kept.
func (w *world) answered(t *testing.T, asked func() []string, n int, id string) {
	t.Helper()
	until(t, fmt.Sprintf("%d questions", n), func() bool { return len(asked()) == n })
	until(t, "the answer is kept", func() bool { p := w.pinOf(t); return p.asked > 0 && p.id == id })
}

// TestObjective: after some messages a model is asked once which task the room works on,
// among those of the person alone; it is pinned until it says otherwise, somebody names
// another one, or it is done.
func TestObjective(t *testing.T) {
	w := newWorld(t, t.TempDir())
	answer, asked := w.withObjective(t)
	paint, shed := w.addTask(t, task.Task{Content: "paint"}), w.addTask(t, task.Task{Content: "build the shed", User: owner})
	others := []string{
		w.addTask(t, task.Task{Content: "theirs", User: "@ann:x"}), w.addTask(t, task.Task{Content: "elsewhere", Room: "!other", User: owner}),
		w.addTask(t, task.Task{Content: "stretch", Schedule: &task.Schedule{Type: "daily", At: "09:00"}}),
	}
	read := func() string {
		t.Helper()
		id := fmt.Sprint("$", time.Now().UnixNano())
		w.say(t, id, "And now? "+id)
		all := w.script.asked()
		for i := len(all) - 1; ; i-- {
			if _, tail, ok := strings.Cut(all[i], "And now? "+id); ok && !asksObjective(all[i]) {
				return tail
			}
		}
	}
	*answer = "#" + shed
	w.talk(t, objectiveEvery-1)
	time.Sleep(oneTooMany)
	equal(t, len(asked()), 0)
	w.talk(t, 1)
	w.answered(t, asked, 1, shed)
	for _, id := range others {
		if strings.Contains(asked()[0], id) {
			t.Errorf("the question offers %s", id)
		}
	}
	if tail := read(); !pinsIn(tail) || !strings.Contains(tail, "build the shed") {
		t.Errorf("not pinned: %s", tail)
	}
	*answer = "It is " + paint // not an id alone
	w.talk(t, objectiveEvery-1)
	until(t, "two questions", func() bool { return len(asked()) == 2 })
	w.say(t, "$same", "And?")
	if p := w.pinOf(t); p.id != shed {
		t.Errorf("an answer that is none: pinned %q", p.id)
	}
	if w.say(t, "$named", "Now #"+paint); w.pinOf(t).id != paint {
		t.Errorf("named, and not pinned: %+v", w.pinOf(t))
	}
	w.talk(t, objectiveEvery-1)
	time.Sleep(oneTooMany)
	equal(t, len(asked()), 2)
	*answer = "None."
	w.talk(t, 1)
	w.answered(t, asked, 3, "")
	past := w.past(t)
	if p := w.pinOf(t); p.asked != past[len(past)-1].ID {
		t.Errorf("it was asked too early: up to message %d of %d", p.asked, past[len(past)-1].ID)
	}
	if tail := read(); pinsIn(tail) {
		t.Errorf("none is worked on, and still pinned: %s", tail)
	}
	*answer = shed
	w.talk(t, objectiveEvery-1)
	w.answered(t, asked, 4, shed)
	result(w.cfg.Tasks.Complete(t.Context(), inDM, shed, "it stands"))(t)
	if tail := read(); pinsIn(tail) {
		t.Errorf("done, and still pinned: %s", tail)
	}
	w.deliver(t, Inbound{ID: "$ann", Room: "!dm", Sender: "@ann:x", Text: "Hello from Ann.", At: time.Now()})
	all := w.script.asked()
	if _, tail, _ := strings.Cut(all[len(all)-1], "Hello from Ann."); pinsIn(tail) {
		t.Errorf("pinned for somebody else: %s", tail)
	}
}

// TestObjectiveCosts: nothing is asked without tasks to choose from, and otherwise once
// after so many messages, whatever the answers, also if none comes and after a restart. Nothing
// comes of an answer that is not one task that the person can be working on.
func TestObjectiveCosts(t *testing.T) {
	w := newWorld(t, t.TempDir())
	answer, asked := w.withObjective(t)
	theirs := w.addTask(t, task.Task{Content: "theirs", User: "@ann:x"})
	w.addTask(t, task.Task{Content: "stretch", Schedule: &task.Schedule{Type: "daily", At: "09:00"}})
	w.talk(t, 2*objectiveEvery)
	time.Sleep(oneTooMany)
	equal(t, len(asked()), 0)
	answers := []string{"500", theirs, w.addTask(t, task.Task{Content: "paint"}) + " task_aaaaaaaa"}
	for i := range 3 * objectiveEvery {
		if i == objectiveEvery {
			w.restart(t)
		}
		*answer = answers[i/objectiveEvery]
		w.talk(t, 1)
		until(t, "it is asked", func() bool { return len(asked()) >= 1+i/objectiveEvery })
	}
	time.Sleep(oneTooMany)
	equal(t, len(asked()), 3)
	if p := w.pinOf(t); p.id != "" {
		t.Errorf("pinned %+v", p)
	}
	t.Logf("%d messages, %d requests, of them %d questions of %d characters at most", 5*objectiveEvery, len(w.script.asked()), len(asked()), len(asked()[2]))
}

// TestObjectiveGivesWay: a message that comes while the model is asked is answered at
// once and changes nothing; while somebody waits elsewhere, nothing is asked.
func TestObjectiveGivesWay(t *testing.T) {
	w := newWorld(t, t.TempDir())
	answer, asked := w.withObjective(t)
	*answer = w.addTask(t, task.Task{Content: "paint"})
	w.script.hold = func(body string) <-chan struct{} {
		if asksObjective(body) {
			return make(chan struct{})
		}
		return nil
	}
	w.talk(t, objectiveEvery)
	until(t, "it is asked", func() bool { return len(asked()) == 1 })
	equal(t, w.say(t, "$1", "are you there?").Text, "fine")
	if p := w.pinOf(t); p.id != "" {
		t.Errorf("an answer that nobody gave is kept: %+v", p)
	}
	other := make(chan struct{})
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, "a long question") && !asksObjective(body) {
			return other
		}
		return nil
	}
	must(t, w.Deliver(t.Context(), Inbound{ID: "$long", Room: "!other", Sender: owner, Text: "a long question", At: time.Now()}))
	w.talk(t, objectiveEvery)
	time.Sleep(oneTooMany)
	equal(t, len(asked()), 1)
	close(other)
	<-w.room.handled
	w.answered(t, asked, 2, *answer)
}
