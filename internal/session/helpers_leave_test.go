package session

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"reverie/internal/tool"
)

// TestLeft: when a room is left, also while the program is down, what works for it ends, and is
// told nowhere; what works for another room goes on.
func TestLeft(t *testing.T) {
	for _, down := range []bool{false, true} {
		w := newWorld(t, t.TempDir())
		w.results(t)
		held := make(chan struct{})
		w.script.hold = func(body string) <-chan struct{} {
			if strings.Contains(body, `## Objective\nlong`) || !strings.Contains(body, `## Objective\n`) {
				return held
			}
			return nil
		}
		var left atomic.Bool
		w.cfg.Left = func(_ context.Context, room string) (bool, error) { return left.Load() && room == "!dm", nil }
		w.withHelpers(t)
		quick, long := w.spawn(t, tool.Job{Objective: "quick"}), w.spawn(t, tool.Job{Objective: "long"})
		later := w.spawn(t, tool.Job{Objective: "later", Needs: []string{long}})
		w.spawnFor(t, spawnScope(w, "!group", false), tool.Job{Objective: "elsewhere"})
		find := func(id string) helper { n, _, _ := w.helpers.one(t.Context(), w.cfg.DB, id); return n }
		until(t, "the rooms' models are asked of what is done", func() bool {
			all := strings.Join(w.script.asked(), "")
			return strings.Contains(all, "result of quick.") && strings.Contains(all, "result of elsewhere.")
		})
		if down {
			w.stop()
		}
		asked := len(w.script.asked())
		if left.Store(true); down {
			w.restart(t)
		} else {
			w.Left("!dm")
		}
		until(t, "they are ended", func() bool { return find(long).status == helperCancelled && find(later).status == helperCancelled })
		if why := find(later).reason.String(); why != "the room was left" {
			t.Errorf("ended because %q", why)
		}
		close(held)
		until(t, "all are told", w.allTold(t))
		if there := w.eventsTold(t, "!group"); len(there) != 1 {
			t.Errorf("told elsewhere: %v", there)
		}
		for _, body := range w.script.asked()[asked:] {
			if down && (strings.Contains(body, quick) || strings.Contains(body, `## Objective\nlong`)) {
				t.Errorf("a model was asked: %s", body)
			}
		}
		w.stop()
		if len(w.room.order) != 1 {
			t.Errorf("said: %q", w.room.order)
		}
	}
}

// TestStopEndsSubSessions: !stop ends those of its room: what runs, what waits for it or for a free
// place. Nothing of them is told, and no model is asked any more.
func TestStopEndsSubSessions(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.results(t)
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, `## Objective\nlong`) {
			return make(chan struct{})
		}
		return nil
	}
	w.withHelpers(t)
	w.spawnFor(t, spawnScope(w, "!group", false), tool.Job{Objective: "elsewhere"})
	until(t, "it is done elsewhere", func() bool { return w.helpersOf(t, "!group")[0].status == helperCompleted })
	long := ""
	for range w.cfg.Helpers.Parallel {
		long = w.spawn(t, tool.Job{Objective: "long"})
	}
	w.spawn(t, tool.Job{Objective: "waits for another", Needs: []string{long}})
	w.spawn(t, tool.Job{Objective: "waits for a place"})
	until(t, "all places are taken", func() bool {
		return strings.Count(strings.Join(w.script.asked(), ""), `## Objective\nlong`) == w.cfg.Helpers.Parallel
	})
	equal(t, w.say(t, "$1", "!stop").Text, "I ended the 4 sub-sessions that worked in the background.")
	until(t, "all are told", w.allTold(t))
	until(t, "nothing runs", func() bool { w.helpers.mu.Lock(); defer w.helpers.mu.Unlock(); return len(w.helpers.active) == 0 })
	for _, n := range w.helpersOf(t, "!dm") {
		if n.status != helperCancelled || n.rounds > 0 {
			t.Errorf("%s is %s after %d requests", n.objective, n.status, n.rounds)
		}
	}
	if told := w.eventsTold(t, "!dm"); len(told) != 0 {
		t.Errorf("told %v", told)
	}
	if m := w.say(t, "$2", "!stop"); !strings.HasPrefix(m.Text, "There is nothing to stop") {
		t.Errorf("the person read %q", m.Text)
	}
	w.say(t, "$3", "hello")
	lacks(t, strings.Join(w.script.asked(), ""), `## Objective\nwaits`)
}
