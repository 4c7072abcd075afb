package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/prompt"
)

func TestPressure(t *testing.T) {
	tests := []struct {
		used         int // of 1000
		before, want Pressure
	}{
		{0, Calm, Calm}, {699, Calm, Calm}, {700, Calm, Warning}, {849, Calm, Warning}, {850, Calm, Compact}, {949, Calm, Compact},
		{950, Calm, Emergency}, {1000, Calm, Emergency}, {5000, Calm, Emergency},
		{600, Warning, Warning}, {599, Warning, Calm}, {750, Compact, Compact}, {749, Compact, Warning}, {849, Warning, Warning},
		{850, Warning, Compact}, {850, Emergency, Emergency}, {849, Emergency, Compact}, {749, Emergency, Warning}, {100, Emergency, Calm},
	}
	for _, tt := range tests {
		if got := pressureOf(tt.used, 1000, tt.before); got != tt.want {
			t.Errorf("at %d of 1000 after %s: %s, want %s", tt.used, tt.before, got, tt.want)
		}
		if got := pressureOf(tt.used, 0, tt.before); got != Calm {
			t.Errorf("with an unknown window: %s", got)
		}
	}
}

// TestPressureIsSteady: more tokens never mean less pressure, nor does a higher level
// before; and a share that moves by less than the slack raises no level twice.
func TestPressureIsSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(100, 1_000_000).Draw(t, "room")
		used, more := rapid.IntRange(0, 2*room).Draw(t, "used"), rapid.IntRange(0, room).Draw(t, "more")
		before := Pressure(rapid.IntRange(0, 3).Draw(t, "before"))
		level := pressureOf(used, room, before)
		if higher := pressureOf(used+more, room, before); higher < level {
			t.Errorf("%s at %d, %s at %d", level, used, higher, used+more)
		}
		if pressureOf(used, room, level) != level {
			t.Errorf("%s turns into %s by itself", level, pressureOf(used, room, level))
		}
		raised, now := 0, level
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			next := pressureOf(used+rapid.IntRange(0, room*(slack-1)/100).Draw(t, "at"), room, now)
			if next > now {
				raised++
			}
			now = next
		}
		if raised > 1 {
			t.Errorf("raised %d times", raised)
		}
	})
}

// TestGuardActsOnce: each level that begins is acted on once, by the larger of estimate
// and count, and the window stays what it is.
func TestGuardActsOnce(t *testing.T) {
	m := newMachine(t, 8192)
	s := newSession(m.Manager, "!r")
	var did []string
	s.relieve.compact = func(context.Context) error { did = append(did, "compact"); return nil }
	s.relieve.emergency = func(context.Context) error { did = append(did, "emergency"); return fmt.Errorf("no room") }
	steps := []struct {
		total, counted int
		want           string // what is done, from the beginning
	}{
		{5000, 0, ""}, {7200, 0, ""}, {7200, 8600, "compact"}, {8700, 0, "compact"}, {7600, 0, "compact"}, {8600, 0, "compact"},
		{9600, 0, "compact emergency"}, {9900, 0, "compact emergency"}, {8600, 0, "compact emergency"}, {9600, 0, "compact emergency"},
		{5000, 0, "compact emergency"}, {8600, 0, "compact emergency compact"}, {9500, 0, "compact emergency compact emergency"},
	}
	for i, st := range steps {
		s.watch(t.Context(), prompt.Report{Total: st.total, Window: 12000, MaxOutput: 2000}, st.counted)
		if got := strings.Join(did, " "); got != st.want {
			t.Errorf("step %d: did %q, want %q", i, got, st.want)
		}
	}
	if line := s.guardLine(t.Context()); line != "The last request took 95 % of the window's room. It is nearly full: I summarise the older part with your next message." {
		t.Errorf("status: %s", line)
	}
	s.watch(t.Context(), prompt.Report{Total: 1 << 30}, 0)
	if s.guard.level != Calm || s.guardLine(t.Context()) != "" {
		t.Errorf("with an unknown window: %+v", s.guard)
	}
}

// TestFullWindow: where the server counts more tokens than was estimated, a
// conversation that fills the window has its oldest turns summarised in one batch, before
// a request is too large for the server, and rarely. Where the estimate is right, the
// guard makes no epoch that would not have been.
func TestFullWindow(t *testing.T) {
	text := strings.Repeat("A sentence about nothing in particular. ", 40)
	fill := func(guarded bool, dense int) (w *world, sizes []int) {
		w = newWorld(t, t.TempDir())
		if dense > 0 {
			w.script.count = func(body string) int { return len(body) / dense }
		}
		for i := range 90 {
			w.say(t, fmt.Sprintf("$%d", i), text)
			asked := w.script.asked()
			sizes = append(sizes, strings.Count(asked[len(asked)-1], "nothing in particular")/40)
			if i == 0 && !guarded {
				w.mu.Lock()
				w.rooms["!dm"].relieve = relief{}
				w.mu.Unlock()
			}
		}
		return w, sizes
	}
	w, sizes := fill(true, 2)
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
	epochs := 0
	if err := w.cfg.DB.QueryRow(`SELECT count(*) FROM prompt_event WHERE room = '!dm' AND kind = 'history'`).Scan(&epochs); err != nil || epochs != drops {
		t.Errorf("%d epochs for a full window, %v", epochs, err)
	}
	if text := w.say(t, "$status", "!status").Text; !strings.Contains(text, "of the window's room") {
		t.Errorf("status: %s", text)
	}
}

// TestServerCountsMore: where the server counts twice what is estimated, the older
// part is summarised while there is room to do it well, not when nothing fits any more.
func TestServerCountsMore(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.count = func(body string) int { return len(body) / 2 }
	text := strings.Repeat("A sentence about nothing in particular. ", 40)
	for i := 0; len(w.compactions(t)) == 0 && i < 60; i++ {
		w.say(t, fmt.Sprintf("$%d", i), text)
	}
	var reason string
	if err := w.cfg.DB.QueryRow(`SELECT reason FROM compaction ORDER BY id LIMIT 1`).Scan(&reason); err != nil || reason != becauseFull {
		t.Errorf("compacted because %q, %v", reason, err)
	}
}
