package window

import (
	"math"
	"reverie/internal/llm/detect"
	"reverie/internal/test/expect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestInputsOf: a detection result becomes the right source.
func TestInputsOf(t *testing.T) {
	asked := detect.Limit{Tokens: 9000, Source: "x", At: noon}
	tests := []struct {
		name  string
		limit func(detect.Limit) detect.Limit
		want  Origin
	}{
		{"configured", func(l detect.Limit) detect.Limit { l.Label, l.At = detect.Enforced, time.Time{}; return l }, ByOwner},
		{"enforced", func(l detect.Limit) detect.Limit { l.Label = detect.Enforced; return l }, ByServer},
		{"hosted", func(l detect.Limit) detect.Limit { l.Label = detect.Max; return l }, ByHost},
		{"likely", func(l detect.Limit) detect.Limit { l.Label = detect.Estimated; return l }, ByModel},
		{"at least", func(l detect.Limit) detect.Limit { l.Label, l.LowerBound = detect.Estimated, true; return l }, ByLeast},
		{"nothing", func(l detect.Limit) detect.Limit { l.Label = detect.Default; return l }, ByDefault},
	}
	for _, tt := range tests {
		in := InputsOf(detect.Found{Model: "local", Limit: tt.limit(asked), Server: detect.Ollama, Trained: 8000, OffGPU: 30})
		expect.False(t, !in.Ollama || in.Trained != 8000 || in.OffGPUPercent != 30 || in.Model != "local", "%s: %+v", tt.name, in)
		d := Decide(in)
		expect.False(t, d.Source != tt.want, "%s: from %s", tt.name, d.Source)
	}
}

// sure decides for a window that the server enforces.
func sure(window int) Decision {
	return Decide(Inputs{Server: Claim{Tokens: window}})
}

// guess decides for an estimated window.
func guess(window int) Decision {
	return Decide(Inputs{Likely: Claim{Tokens: window}})
}

// locked returns the lock of a conversation started with d.
func locked(d Decision) *Lock {
	var none *Lock
	l := none.next(d, "!r", 1, "m", "", true, noon)
	return &l
}

func TestLockAtBoundaries(t *testing.T) {
	forced := Decide(Inputs{Tier: 1, Server: Claim{Tokens: 65536}})
	for name, tt := range map[string]struct {
		from, now    Decision
		tier, atNew  int // within the conversation, and with a new one
		other        int // with another model
		secondReason string
	}{
		"nothing changes":      {sure(8192), sure(8192), 2, 2, 2, atStart},
		"up":                   {sure(8192), sure(20480), 2, 4, 4, atNew},
		"up, but only likely":  {sure(8192), guess(65536), 2, 2, 5, atStart},
		"down":                 {sure(32768), sure(4096), 4, 1, 1, atNew},
		"down by a token":      {sure(16385), sure(16384), 4, 3, 3, atNew},
		"down, but a guess":    {sure(32768), guess(4096), 4, 4, 1, atStart},
		"forced":               {sure(32768), forced, 4, 1, 1, atNew},
		"a guess, and another": {guess(32768), guess(4096), 4, 1, 1, atNew},
	} {
		t.Run(name, func(t *testing.T) {
			l, at := locked(tt.from), noon.Add(time.Hour)
			expect.Equal(t, l.next(tt.now, "!r", 1, "m", "", true, at), *l)
			fresh := l.next(tt.now, "!r", 2, "m", "", true, at)
			expect.False(t, fresh.Tier != tt.atNew || fresh.Reason != tt.secondReason || fresh.Conversation != 2, "with a new conversation: %+v", fresh)
			got := l.atBoundary(tt.now, atCompaction, at)
			expect.False(t, got.Tier != tt.atNew || got.Conversation != 1, "at a compaction: %+v", got)
			got = l.next(tt.now, "!r", 1, "n", "", true, at)
			expect.False(t, got.Tier != tt.other || got.Reason != atModel || got.Model != "n", "with another model: %+v", got)
			got = l.next(tt.now, "!r", 1, "m", "tier=2", false, at)
			expect.False(t, got.Tier != tt.other || got.Reason != atSettings, "with another configuration: %+v", got)
		})
	}
}

// TestLockStability: between boundaries the tier changes only to correct an estimate, and no
// estimate replaces a sure window.
func TestLockStability(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() Decision {
			tokens := rapid.SampledFrom([]int{4096, 4097, 8192, 10240, 16384, 20000, 32768, 131072}).Draw(t, "window")
			if rapid.Bool().Draw(t, "sure") {
				return sure(tokens)
			}
			return guess(tokens)
		}
		lock := *locked(draw())
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			d, before := draw(), lock
			conversation, person := before.Conversation+int64(rapid.IntRange(0, 1).Draw(t, "new")), rapid.Bool().Draw(t, "person")
			lock = before.next(d, "!r", conversation, "m", "", person, noon.Add(time.Hour))
			within := conversation == before.Conversation
			switch {
			case before.Sure && !d.Sure && (lock.Tier != before.Tier || !lock.Sure), within && before.Sure && lock != before:
				t.Fatalf("moved from %+v to %+v by %+v", before, lock, d)
			case within && lock != before && (!d.Sure || !person || !lock.Sure || lock.Tier != d.Tier || lock.Reason != atAnswer):
				t.Fatalf("corrected from %+v to %+v by %+v", before, lock, d)
			case !within && d.Sure && lock.Tier != d.Tier:
				t.Fatalf("a new conversation has %+v, not %+v", lock, d)
			}
		}
	})
}

func TestTokenRatio(t *testing.T) {
	for _, tt := range []struct {
		estimated, counted int
		want               float64 // 0 = nothing is learned
	}{
		{1000, 1000, 1}, {1000, 1700, 1.7}, {1000, 800, 0.8}, {1000, 0, 0}, {1000, 400, 0}, // a server that left out the beginning
		{1000, 9000, 0}, {100, 150, 0}, {0, 5, 0},
	} {
		got, ok := tokenRatio(tt.estimated, tt.counted)
		expect.False(t, ok != (tt.want > 0) || ok && got != tt.want, "%d estimated, %d counted: %v, %v", tt.estimated, tt.counted, got, ok)
	}
	expect.Equal(t, updateRatio(1, 1.5, 3), 1.5)
	got := updateRatio(1, 0.8, 3)
	expect.False(t, math.Abs(got-0.95) > 1e-9, "less is believed by and by, but %v", got)
	expect.Equal(t, updateRatio(1, 0.8, 0), 0.8)
}
