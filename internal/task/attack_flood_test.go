package task

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/trust"
)

// every is a schedule that is due each minute.
func every(t *testing.T, p *post) *Schedule {
	t.Helper()
	s := must(Schedule{Type: interval, IntervalSeconds: 60}.Validate(p.now, time.UTC))(t)
	return &s
}

// labelOf is the label of a task of the room.
func labelOf(room string) trust.Label {
	return trust.Label{Integrity: trust.User, Readers: trust.Room(room)}
}

// TestFloodOfTasks: of active tasks that the model works on, a room and a person have so
// many and no more, however they come about; reminders are not counted.
func TestFloodOfTasks(t *testing.T) {
	p := newPost(t)
	ctx, minutely := t.Context(), every(t, p)
	work := func(room, user string, i int) (Task, error) {
		return p.store.Add(ctx, Task{Room: room, User: user, Label: labelOf(room), Content: fmt.Sprint("work ", i), Schedule: minutely, Prompt: "think"})
	}
	refused := func(what string, err error) {
		t.Helper()
		var full *BoundError
		if !errors.As(err, &full) || !strings.Contains(err.Error(), "tell the person") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range DefaultPerRoom {
		add(t, p.store, Task{Room: here, User: fmt.Sprint("@", i, ":x"), Content: "work", Schedule: minutely, Prompt: "think"})
	}
	_, err := work(here, "@ann:x", 0)
	refused("one more in the room", err)
	for i := range DefaultPerPerson {
		must(work(fmt.Sprint("!", i), "@ann:x", i))(t)
	}
	_, err = work("!new", "@ann:x", 0)
	refused("one more of the person", err)
	reminder := must(p.store.Add(ctx, Task{Room: "!new", User: "@ann:x", Label: labelOf("!new"), Content: "tea", Schedule: minutely}))(t)
	plan := must(p.store.Add(ctx, Task{Room: "!new", User: "@ann:x", Label: labelOf("!new"), Content: "plan", Prompt: "think"}))(t)
	prompt := "think"
	_, err = p.store.Update(ctx, trust.Place{Room: "!new"}, reminder.ID, Patch{Prompt: &prompt})
	refused("a reminder that becomes work", err)
	_, err = p.store.Update(ctx, trust.Place{Room: "!new"}, plan.ID, Patch{Schedule: minutely})
	refused("work that gets a time", err)
	mine, err := p.store.List(ctx, trust.Place{Room: "!0"}, "")
	if err != nil || len(mine) != 1 {
		t.Fatal(mine, err)
	}
	if _, err := p.store.Update(ctx, trust.Place{Room: "!0"}, mine[0].ID, Patch{Prompt: &prompt}); err != nil {
		t.Errorf("a change of what counts already: %v", err)
	}
	must(p.store.Pause(ctx, trust.Place{Room: "!0"}, mine[0].ID))(t)
	if _, err := work("!new", "@ann:x", 0); err != nil {
		t.Errorf("after one was paused: %v", err)
	}
	_, err = p.store.Resume(ctx, trust.Place{Room: "!0"}, mine[0].ID)
	refused("resuming one too many", err)
	if got, err := p.store.Get(ctx, trust.Place{Room: "!0"}, mine[0].ID); err != nil || got.Status != Paused {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRunsPerDay: the model works on tasks so often in 24 hours, over all rooms and also
// after a restart. What is more is put off, not lost; reminders go on.
func TestRunsPerDay(t *testing.T) {
	p := newPost(t)
	db := p.store.db
	p.sched.RunsPerDay = 10
	for _, room := range []string{here, "!there"} {
		add(t, p.store, Task{Room: room, User: "@ann:x", Content: "work", Schedule: every(t, p), Prompt: "think"})
	}
	tea := p.add("tea", "", Schedule{Type: daily, At: "08:30"})
	work := func() (did int) {
		p.look()
		for _, r := range p.inbox {
			did += min(len(r.Task.Prompt), 1)
		}
		p.work()
		return did
	}
	did := 0
	for range 40 {
		p.now = p.now.Add(time.Minute)
		did += work()
	}
	p.restart(db)
	p.sched.RunsPerDay = 10
	for range 20 {
		p.now = p.now.Add(time.Minute)
		did += work()
	}
	if did != 10 {
		t.Errorf("the model worked %d times", did)
	}
	if got := p.task(tea.ID); got.Runs != 1 {
		t.Errorf("the reminder ran %d times", got.Runs)
	}
	p.now = p.now.Add(24 * time.Hour)
	if did := work(); did != 2 {
		t.Errorf("a day later %d runs went on", did)
	}
}
