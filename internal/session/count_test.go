package session

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"reverie/internal/memory"
)

// counts are servers that count tokens in ways of their own, from the words of a request.
var counts = map[string]func(text string) float64{
	"a third of the bytes": func(s string) float64 { return float64(len(s)) / 3 },
	"bytes by 4.5":         func(s string) float64 { return float64(len(s)) / 4.5 },
	"wide letters heavier": func(s string) float64 {
		wide := 0
		for _, r := range s {
			if r >= 0x2E80 {
				wide++
			}
		}
		return float64(utf8.RuneCountInString(s)-wide)/4 + 1.6*float64(wide)
	},
}

// words of a request, as a server's template puts them together.
func spoken(t testing.TB, body string) string {
	t.Helper()
	var req struct {
		Messages []struct{ Content string }
		Tools    []json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	for _, m := range req.Messages {
		b.WriteString("<|im_start|>" + m.Content)
	}
	for _, raw := range req.Tools {
		b.Write(raw)
	}
	return b.String()
}

// TestCounting: after ten turns what a request takes is foretold to three percent,
// whatever the server counts and whatever language is spoken; a restart does not begin anew.
func TestCounting(t *testing.T) {
	says := []string{
		"We go on talking about the garden, and what to plant where; the beds face south and are dry in June.",
		"Der Garten liegt nach Süden, und die Beete trocknen im Juni aus. Was pflanzen wir, und wann?",
		"今日は庭の話をしましょう。六月には土が乾くので、何を植えるか考えています。",
		`{"bed": 4, "plants": ["beans", "kale"], "m2": 3.5, "dates": ["2026-05-01", "2026-06-12"]}`,
	}
	for name, count := range counts {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(from, to int) {
				w := newWorldOf(t, dir, memory.FTS5, 16_000)
				defer w.stop()
				w.script.count = func(body string) int { return int(count(spoken(t, body))) }
				for i := from; i < to; i++ {
					w.say(t, fmt.Sprint("$", i), fmt.Sprintf("%d. %s", i, says[i%len(says)]))
					all := w.script.asked()
					counted := w.script.count(all[len(all)-1])
					w.mu.Lock()
					foretold := w.rooms["!dm"].usage.expected
					w.mu.Unlock()
					off := math.Abs(float64(foretold-counted)) / float64(counted)
					if i >= 10 && off > 0.03 {
						t.Errorf("turn %d: %d foretold, %d counted: %.1f %%", i, foretold, counted, 100*off)
					}
					if i == 0 || i == 9 || i == from || i == to-1 {
						t.Logf("turn %d: %d foretold, %d counted: %.1f %%", i, foretold, counted, 100*off)
					}
				}
				wants(t, w.say(t, fmt.Sprint("$status", from), "!status").Text, "For the last answer the model read ")
			}
			run(0, 20)
			run(20, 24) // a new process
		})
	}
}

// TestFullWindow: where the server counts twice what was estimated, the older part is summarised
// before a request is too large, and rarely.
func TestFullWindow(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.count = func(body string) int { return len(body) / 2 }
	for i := range 60 {
		w.say(t, fmt.Sprintf("$%d", i), strings.Repeat("A sentence about nothing in particular. ", 40))
	}
	for _, body := range w.script.asked() {
		if n := len(body) / 2; n > 16000-500 {
			t.Errorf("a request of %d tokens", n)
		}
	}
	reasons := w.column(t, `SELECT reason FROM compaction`)
	if n := len(reasons); n == 0 || n > 8 || reasons[n-1] != becauseFull {
		t.Errorf("compacted because %v", reasons)
	}
	wants(t, w.say(t, "$status", "!status").Text, "of the window's room")
}

func TestDensity(t *testing.T) {
	for _, tt := range []struct {
		estimated, counted int
		want               float64 // 0 = nothing is learned
	}{
		{1000, 1000, 1}, {1000, 1700, 1.7}, {1000, 800, 0.8}, {1000, 0, 0}, {1000, 400, 0}, // a server that left out the beginning
		{1000, 9000, 0}, {100, 150, 0}, {0, 5, 0},
	} {
		if got, ok := density(tt.estimated, tt.counted); ok != (tt.want > 0) || ok && got != tt.want {
			t.Errorf("%d estimated, %d counted: %v, %v", tt.estimated, tt.counted, got, ok)
		}
	}
	equal(t, learned(1, 1.5, 3), 1.5)
	if got := learned(1, 0.8, 3); math.Abs(got-0.95) > 1e-9 {
		t.Errorf("less is believed by and by, but %v", got)
	}
	equal(t, learned(1, 0.8, 0), 0.8)
}
