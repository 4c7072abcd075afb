package task

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLeft: in a room that we have left nothing fires, not even what was handed over
// before; its tasks are paused, and say why until they are resumed.
func TestLeft(t *testing.T) {
	const there = "!there:example.org"
	p := newPost(t)
	gone := ""
	p.sched.Left = func(_ context.Context, room string) (bool, error) { return room == gone, nil }
	p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	elsewhere := func(content string, s *Schedule) Task {
		return add(t, p.store, Task{Room: there, User: "@ann:x", Content: content, Schedule: s})
	}
	due := elsewhere("due", &Schedule{Type: daily, At: "09:00"})
	handed := elsewhere("handed over", &Schedule{Type: daily, At: "08:30"})
	failing := elsewhere("failing", &Schedule{Type: daily, At: "08:10"})
	later := elsewhere("later", &Schedule{Type: daily, At: "17:00"})
	never := elsewhere("without a time", nil)
	p.fail = func(Run) error { return errors.New("it fails") }
	p.at(21, 8, 10) // and is to be tried again
	p.fail = nil
	p.now = p.now.Add(20 * time.Minute)
	p.sched.Left = nil
	if p.look(); len(p.inbox) != 2 {
		t.Fatalf("handed over: %+v", p.inbox)
	}
	p.sched.Left = func(_ context.Context, room string) (bool, error) { return room == gone, nil }
	gone = there
	p.work()
	p.heard()
	p.now = p.now.Add(30 * time.Minute)
	if p.look(); len(p.inbox) != 1 || p.inbox[0].Task.Content != "tea" {
		t.Errorf("handed over: %+v", p.inbox)
	}
	p.work()
	p.at(21, 17, 0)
	p.at(22, 9, 0)
	p.heard("tea 21 09:00", "tea 22 09:00")
	for _, it := range []Task{due, handed, failing, later} {
		got, err := p.store.Get(t.Context(), in(there), it.ID)
		if err != nil || got.Status != Paused || got.Reason != "I am no longer in this room" || got.Runs != 0 || !got.NextDue.IsZero() {
			t.Errorf("%s: %+v, %v", it.Content, got, err)
		}
	}
	if got, err := p.store.Get(t.Context(), in(there), never.ID); err != nil || got.Status != Active {
		t.Errorf("a task without a time: %+v, %v", got, err)
	}
	runs, err := p.store.AllRuns(t.Context(), there, "", 10)
	if err != nil || len(runs) != 2 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	for _, r := range runs {
		if r.State != RunSkipped || r.Result != "I am no longer in this room" {
			t.Errorf("run of %s: %+v", r.Task.Content, r)
		}
	}

	gone = ""
	if got, err := p.store.Resume(t.Context(), in(there), due.ID); err != nil || got.Reason != "" {
		t.Errorf("resumed: %+v, %v", got, err)
	}
	p.at(23, 9, 0)
	p.heard("tea 23 09:00", "due 23 09:00")
}

// TestLeftUnknown: what cannot be found out is no reason to pause, nor to fire.
func TestLeftUnknown(t *testing.T) {
	p := newPost(t)
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	broken := errors.New("the disk is full")
	p.sched.Left = func(context.Context, string) (bool, error) { return true, broken }
	p.now = p.now.Add(time.Hour)
	if _, err := p.sched.look(t.Context(), p.now, false); !errors.Is(err, broken) {
		t.Errorf("err %v, want %v", err, broken)
	}
	if got := p.task(tea.ID); got.Status != Active || len(p.inbox) != 0 {
		t.Errorf("%+v; handed over %+v", got, p.inbox)
	}
	p.sched.Left = nil
	p.at(21, 9, 1)
	p.heard("tea 21 09:00")
}
