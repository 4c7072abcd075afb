package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reverie/internal/prompt"
)

// TestGuardActsOnce: a window that fills up is acted on once, by the larger of estimate
// and count, and the window stays what it is.
func TestGuardActsOnce(t *testing.T) {
	m := newMachine(t, 8192)
	s := newSession(m.Manager, "!r")
	steps := []struct {
		total, counted int // of 10,000
		want           bool
		line           string
	}{
		{5000, 0, false, "50 % of the window's room."}, {7200, 0, false, "72 % of the window's room. "}, {7200, 8600, true, "86 % of the window's room. It is nearly full: I summarise the older part with your next message."},
		{8700, 0, false, "87 %"}, {7600, 0, false, "76 %"}, {8499, 0, false, "84 %"}, {9600, 0, false, "96 %"},
		{7400, 0, false, "74 %"}, {8500, 0, true, "85 %"}, {99000, 0, false, "990 %"},
	}
	for i, st := range steps {
		s.guard.full = false
		s.watch(prompt.Report{Total: st.total, Window: 12000, MaxOutput: 2000}, st.counted)
		if line := s.guardLine(t.Context()); s.guard.full != st.want || !strings.Contains(line, st.line) {
			t.Errorf("step %d: acted %v, want %v: %s", i, s.guard.full, st.want, line)
		}
	}
	s.watch(prompt.Report{Total: 1 << 30}, 0)
	if s.guard.acted || s.guardLine(t.Context()) != "" {
		t.Errorf("with an unknown window: %+v", s.guard)
	}
}

// TestFullWindow: where the server counts more tokens than was estimated, a
// conversation that fills the window has its oldest turns summarised in one batch, before
// a request is too large for the server, and rarely. Where the estimate is right, the
// guard makes no epoch that would not have been.
func TestFullWindow(t *testing.T) {
	text := strings.Repeat("A sentence about nothing in particular. ", 40)
	var begun func(like string) int
	fill := func(guarded bool, dense int) (w *world, sizes []int) {
		w = newWorld(t, t.TempDir())
		begun = w.countEpochs(t)
		if dense > 0 {
			w.script.count = func(body string) int { return len(body) / dense }
		}
		for i := range 90 {
			w.say(t, fmt.Sprintf("$%d", i), text)
			asked := w.script.asked()
			sizes = append(sizes, strings.Count(asked[len(asked)-1], "nothing in particular")/40)
			if !guarded {
				w.mu.Lock()
				w.rooms["!dm"].guard = guard{}
				w.mu.Unlock()
			}
		}
		return w, sizes
	}
	w, sizes := fill(true, 2)
	full := begun("history") + begun("%compaction%")
	drops := 0
	for i := 1; i < len(sizes); i++ {
		if sizes[i] < sizes[i-1] {
			drops++
			if sizes[i] > sizes[i-1]*2/3 {
				t.Errorf("only %d of %d turns went", sizes[i-1]-sizes[i], sizes[i-1])
			}
		}
	}
	if len(w.compactions(t)) == 0 {
		t.Error("the older part went without a summary")
	} else if reason := value[string](t, w, `SELECT reason FROM compaction ORDER BY id LIMIT 1`); reason != becauseFull { // while there is room to do it well
		t.Errorf("compacted because %q", reason)
	}
	if drops == 0 || drops > len(sizes)/8 {
		t.Errorf("turns went %d times in %d: %v", drops, len(sizes), sizes)
	}
	alone, _ := fill(false, 2) // how the server counts is known without a guard, too
	for _, body := range append(w.script.asked(), alone.script.asked()...) {
		if n := len(body) / 2; n > 16000-500 {
			t.Errorf("a request of %d tokens", n)
		}
	}
	_, guarded := fill(true, 0)
	if _, free := fill(false, 0); !slices.Equal(guarded, free) {
		t.Errorf("with a guard %v, without %v", guarded, free)
	}
	equal(t, full, drops) // epochs for a full window
	wants(t, w.say(t, "$status", "!status").Text, "of the window's room")
}
