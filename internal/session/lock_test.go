package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/prompt"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sure is the decision for a window that the server enforces.
func sure(window int) prompt.Decision {
	return prompt.Decide(prompt.Inputs{Server: prompt.Said{Tokens: window}})
}

// guess is the decision for a window that is only likely.
func guess(window int) prompt.Decision {
	return prompt.Decide(prompt.Inputs{Likely: prompt.Said{Tokens: window}})
}

// locked is the lock of a conversation that began with the decision d.
func locked(d prompt.Decision) *TierLock {
	var none *TierLock
	l := none.next(d, "!r", 1, "m", "", true, noon)
	return &l
}

func TestLockAtBoundaries(t *testing.T) {
	forced := prompt.Decide(prompt.Inputs{Tier: 1, Server: prompt.Said{Tokens: 65536}})
	for name, tt := range map[string]struct {
		from, now    prompt.Decision
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
			equal(t, l.next(tt.now, "!r", 1, "m", "", true, at), *l)
			fresh := l.next(tt.now, "!r", 2, "m", "", true, at)
			if fresh.Tier != tt.atNew || fresh.Reason != tt.secondReason || fresh.Conversation != 2 {
				t.Errorf("with a new conversation: %+v", fresh)
			}
			if got := l.shift(tt.now, atCompaction, at); got.Tier != tt.atNew || got.Conversation != 1 {
				t.Errorf("at a compaction: %+v", got)
			}
			if got := l.next(tt.now, "!r", 1, "n", "", true, at); got.Tier != tt.other || got.Reason != atModel || got.Model != "n" {
				t.Errorf("with another model: %+v", got)
			}
			if got := l.next(tt.now, "!r", 1, "m", "tier=2", false, at); got.Tier != tt.other || got.Reason != atSettings {
				t.Errorf("with another configuration: %+v", got)
			}
		})
	}
}

// TestNothingMovesALockedTier: whatever is known between two boundaries, the tier stays, but for
// the one correction of a guess, for a person's message. No boundary moves what is sure by a guess.
func TestNothingMovesALockedTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() prompt.Decision {
			window := rapid.SampledFrom([]int{4096, 4097, 8192, 10240, 16384, 20000, 32768, 131072}).Draw(t, "window")
			if rapid.Bool().Draw(t, "sure") {
				return sure(window)
			}
			return guess(window)
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
