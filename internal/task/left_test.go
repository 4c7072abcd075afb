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
	elsewhere := func(content string, s *Schedule) Task {
		return add(t, p.store, Task{Room: there, User: "@ann:x", Content: content, Schedule: s})
	}
	p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	failing := elsewhere("failing", &Schedule{Type: daily, At: "08:10"})
	p.fail = func(Run) error { return errors.New("it fails") }
	p.at(21, 8, 10) // and is to be tried again
	p.fail = nil
	due, handed := elsewhere("due", &Schedule{Type: daily, At: "09:00"}), elsewhere("handed over", &Schedule{Type: daily, At: "08:30"})
	never := elsewhere("without a time", nil)
	p.now = p.now.Add(20 * time.Minute)
	if p.look(); len(p.inbox) != 2 {
		t.Fatalf("handed over: %+v", p.inbox)
	}
	gone = there
	p.work()
	p.at(21, 9, 0)
	p.heard("tea 21 09:00")
	for _, it := range []Task{due, handed, failing} {
		if got, err := p.store.Find(t.Context(), it.ID); err != nil || got.Status != Paused || got.Reason != leftReason || got.Runs != 0 || !got.NextDue.IsZero() {
			t.Errorf("%s: %+v, %v", it.Content, got, err)
		}
	}
	if got, err := p.store.Find(t.Context(), never.ID); err != nil || got.Status != Active {
		t.Errorf("a task without a time: %+v, %v", got, err)
	}
	runs, err := p.store.AllRuns(t.Context(), there, "", 10)
	if err != nil || len(runs) != 2 || runs[0].State != RunSkipped || runs[1].State != RunSkipped || runs[0].Result != leftReason {
		t.Errorf("runs %+v, %v", runs, err)
	}
	gone = ""
	if got, err := p.store.Resume(t.Context(), in(there), due.ID); err != nil || got.Reason != "" {
		t.Errorf("resumed: %+v, %v", got, err)
	}
	p.at(22, 9, 0)
	p.heard("tea 22 09:00", "due 22 09:00")
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
