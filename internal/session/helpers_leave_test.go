package session

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/tool"
)

// TestLeftWhileDown: after a start, nothing goes on for a room that was left meanwhile,
// and nothing is told there; in other rooms it is.
func TestLeftWhileDown(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.results(t)
	told := make(chan struct{})
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, `## Objective\nlong`) || !strings.Contains(body, `## Objective\n`) {
			return told
		}
		return nil
	}
	w.withHelpers(t)
	quick, long := w.spawn(t, tool.Job{Objective: "quick"}), w.spawn(t, tool.Job{Objective: "long"})
	later := w.spawn(t, tool.Job{Objective: "later", NotBefore: time.Now().Add(time.Hour)})
	elsewhere, _, err := w.helpers.Spawn(t.Context(), spawnScope(w, "!group", false), tool.Job{Objective: "elsewhere", Mode: "minimal"})
	if err != nil {
		t.Fatal(err)
	}
	status := func(id string) string { n, _, _ := w.helpers.one(t.Context(), w.cfg.DB, id); return n.status }
	until(t, "some are done", func() bool { return status(quick) == helperCompleted && status(elsewhere) == helperCompleted })
	w.cfg.Left = func(_ context.Context, room string) (bool, error) { return room == "!dm", nil }
	w.stop()
	asked := len(w.script.asked())
	w.restart(t)
	until(t, "they are ended", func() bool { return status(long) == helperCancelled && status(later) == helperCancelled })
	close(told)
	until(t, "all are told", w.allTold(t))
	if n := len(w.eventsTold(t, "!group")); n != 1 {
		t.Errorf("elsewhere, %d are told", n)
	}
	for _, body := range w.script.asked()[asked:] {
		if strings.Contains(body, quick) || strings.Contains(body, `## Objective\nlong`) {
			t.Errorf("a model was asked: %s", body)
		}
	}
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	if len(w.room.order) != 1 {
		t.Errorf("said: %q", w.room.order)
	}
}

// TestLeftWhileTheyWork: when a room is left, what works for it ends, and is told nowhere;
// what works for another goes on.
func TestLeftWhileTheyWork(t *testing.T) {
	w := newWorld(t, t.TempDir())
	held := make(chan struct{})
	w.script.hold = func(string) <-chan struct{} { return held }
	var left atomic.Bool
	w.cfg.Left = func(_ context.Context, room string) (bool, error) { return left.Load() && room == "!dm", nil }
	w.withHelpers(t)
	works, later := w.spawn(t, tool.Job{Objective: "works"}), w.spawn(t, tool.Job{Objective: "later", NotBefore: time.Now().Add(time.Hour)})
	elsewhere, _, err := w.helpers.Spawn(t.Context(), spawnScope(w, "!group", false), tool.Job{Objective: "elsewhere", Mode: "minimal"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "they work", func() bool { return len(w.script.asked()) == 2 })
	left.Store(true)
	w.Left("!dm")
	find := func(id string) helper { n, _, _ := w.helpers.one(t.Context(), w.cfg.DB, id); return n }
	until(t, "they are ended", func() bool { return find(works).status == helperCancelled && find(later).status == helperCancelled })
	if why := find(later).reason.String(); why != "the room was left" {
		t.Errorf("ended because %q", why)
	}
	close(held)
	until(t, "what is left has ended", func() bool { return find(elsewhere).status == helperCompleted })
	until(t, "all are told", w.allTold(t))
	if here, there := w.eventsTold(t, "!dm"), w.eventsTold(t, "!group"); len(here) != 0 || len(there) != 1 {
		t.Errorf("told: %v, elsewhere %v", here, there)
	}
}

// TestStopWhatWaits: !stop ends what waits for a free place, or for its time, before it
// has begun.
func TestStopWhatWaits(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, `## Objective\nlong`) {
			return make(chan struct{})
		}
		return nil
	}
	w.withHelpers(t)
	for range w.cfg.Helpers.Parallel {
		w.spawn(t, tool.Job{Objective: "long"})
	}
	until(t, "all places are taken", func() bool { return len(w.script.asked()) == w.cfg.Helpers.Parallel })
	waits := []string{w.spawn(t, tool.Job{Objective: "waits for a place"}), w.spawn(t, tool.Job{Objective: "waits for a time", NotBefore: time.Now().Add(time.Hour)})}
	if m := w.say(t, "$1", "!stop"); m.Text != "I ended the 4 sub-sessions that worked in the background." {
		t.Errorf("the person read %q", m.Text)
	}
	until(t, "the places are free", func() bool { w.helpers.mu.Lock(); defer w.helpers.mu.Unlock(); return len(w.helpers.active) == 0 })
	w.say(t, "$2", "hello")
	for _, id := range waits {
		if n, _, _ := w.helpers.one(t.Context(), w.cfg.DB, id); n.status != helperCancelled || n.rounds > 0 {
			t.Errorf("%s is %s after %d requests", n.objective, n.status, n.rounds)
		}
	}
	for _, body := range w.script.asked() {
		if strings.Contains(body, `## Objective\nwaits`) {
			t.Errorf("a model was asked: %s", body)
		}
	}
}

// TestNotBeforeByTheWall: while one waits for its time, it is looked at often: a machine
// that slept, or a clock that was set, is noticed.
func TestNotBeforeByTheWall(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.withHelpers(t)
	if wait := w.helpers.until(w.cfg.Now().Add(3 * time.Hour)); wait > dueLook {
		t.Errorf("the next look is in %v", wait)
	}
	if wait := w.helpers.until(time.Time{}); wait != idleLook {
		t.Errorf("with nothing to wait for, the next look is in %v", wait)
	}
}
