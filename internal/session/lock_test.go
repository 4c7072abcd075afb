package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/prompt"
	"reverie/internal/vram"
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

// seen observes d so many times, two minutes apart.
func (l *TierLock) seen(d prompt.Decision, times int) time.Time {
	at := noon
	for range times {
		at = at.Add(2 * time.Minute)
		l.observe(d, at)
	}
	return at
}

func TestLockAtBoundaries(t *testing.T) {
	forced := prompt.Decide(prompt.Inputs{Tier: 1, Server: prompt.Said{Tokens: 65536}})
	tests := []struct {
		name         string
		from         prompt.Decision
		observed     prompt.Decision
		times        int
		now          prompt.Decision
		tier, atNew  int // within the conversation, and with a new one
		other        int // with another model
		secondReason string
	}{
		{"nothing changes", sure(8192), sure(8192), 5, sure(8192), 2, 2, 2, atStart},
		{"up, seen long enough", sure(8192), sure(20480), 3, sure(20480), 2, 4, 4, atNew},
		{"up, seen twice", sure(8192), sure(20480), 2, sure(20480), 2, 2, 4, atStart},
		{"up, never seen", sure(8192), sure(8192), 0, sure(20480), 2, 2, 4, atStart},
		{"up, by less than a quarter", sure(16384), sure(20479), 9, sure(20479), 3, 3, 4, atStart},
		{"up, a tier by a quarter and the next by less", sure(4096), sure(9000), 3, sure(9000), 1, 2, 3, atNew},
		{"up, but not any more", sure(8192), sure(65536), 3, sure(8192), 2, 2, 2, atStart},
		{"up, and less than was seen", sure(8192), sure(65536), 3, sure(12000), 2, 3, 3, atNew},
		{"up, but only likely", sure(8192), guess(65536), 3, guess(65536), 2, 5, 5, atNew},
		{"down", sure(32768), sure(4096), 0, sure(4096), 4, 1, 1, atNew},
		{"down by a token", sure(16385), sure(16384), 0, sure(16384), 4, 3, 3, atNew},
		{"down, but only likely", sure(32768), guess(4096), 5, guess(4096), 4, 4, 1, atStart},
		{"forced", sure(32768), forced, 5, forced, 4, 1, 1, atNew},
		{"forced from the beginning", forced, forced, 5, forced, 1, 1, 1, atStart},
		{"a guess, and another one", guess(32768), guess(4096), 5, guess(4096), 4, 4, 1, atStart},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := locked(tt.from)
			at := l.seen(tt.observed, tt.times).Add(time.Hour)
			if got := l.next(tt.now, "!r", 1, "m", "", true, at); got.Tier != tt.tier || got.At != l.At {
				t.Errorf("within the conversation: %+v", got)
			}
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

// TestGuessIsCorrectedOnce: the first sure word after a lock that was a guess counts,
// for a person's message, and not late.
func TestGuessIsCorrectedOnce(t *testing.T) {
	l := locked(guess(4096))
	early := noon.Add(settling - time.Second)
	equal(t, l.next(sure(32768), "!r", 1, "m", "", false, early), *l)
	equal(t, l.next(guess(32768), "!r", 1, "m", "", true, early), *l)
	equal(t, l.next(sure(32768), "!r", 1, "m", "", true, noon.Add(settling)), *l)
	got := l.next(sure(32768), "!r", 1, "m", "", true, early)
	if got.Tier != 4 || !got.Sure || got.Reason != atAnswer {
		t.Fatalf("for a person: %+v", got)
	}
	equal(t, got.next(sure(8192), "!r", 1, "m", "", true, early.Add(time.Second)), got)
	late := l.next(sure(32768), "!r", 2, "m", "", true, noon.Add(time.Hour))
	if late.Tier != 4 || !late.Sure {
		t.Errorf("a guess at the next conversation: %+v", late)
	}
}

// drawDecision is what may be known at some time: any window from any source, any
// GPU memory.
func drawDecision(t *rapid.T) prompt.Decision {
	window := func(name string) prompt.Said {
		if rapid.Bool().Draw(t, name+"?") {
			return prompt.Said{}
		}
		return prompt.Said{Tokens: rapid.SampledFrom([]int{4096, 4097, 8192, 10240, 16384, 20000, 20480, 32768, 40960, 131072}).Draw(t, name)}
	}
	in := prompt.Inputs{Server: window("server"), Likely: window("likely"), Last: window("last"), Fit: window("fit"),
		Here: rapid.Bool().Draw(t, "here"), Ollama: rapid.Bool().Draw(t, "ollama")}
	in.VRAM.State = vram.State(rapid.IntRange(0, 1).Draw(t, "memory?"))
	if in.VRAM.State == vram.Known {
		in.VRAM.Total = rapid.Uint64Range(1<<30, 1<<38).Draw(t, "memory")
	}
	return prompt.Decide(in)
}

// TestNothingMovesALockedTier: whatever is observed between two boundaries, the tier
// stays, but for the one correction of a guess. At a boundary it goes up only to what
// three observations in a row allowed.
func TestNothingMovesALockedTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		var none *TierLock
		lock := none.next(drawDecision(t), "!r", 1, "m", "", true, now)
		corrected := false
		var row []int // safe tiers that were observed in a row above the lock's
		var last time.Time
		count := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, time.Minute, 10 * time.Minute}).Draw(t, "later"))
			d := drawDecision(t)
			before := lock
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // a boundary
				lock = before.next(d, "!r", before.Conversation+1, "m", "", true, now)
				allowed := 0
				if count >= enough {
					allowed = prompt.SafeTier(d.Window)
					for _, tier := range row {
						allowed = min(allowed, tier)
					}
				}
				if lock.Tier > before.Tier && lock.Tier > allowed && (before.Sure || !d.Sure) {
					t.Fatalf("up to %d, allowed %d: from %+v by %+v", lock.Tier, allowed, before, d)
				}
				if lock.Tier < before.Tier && !d.Sure {
					t.Fatalf("down by a guess: from %+v by %+v", before, d)
				}
				if lock.At != before.At {
					row, count, corrected = nil, 0, false
				}
			case 1, 2, 3, 4:
				lock.observe(d, now)
				if tier := prompt.SafeTier(d.Window); tier > lock.Tier {
					row = append(row, tier)
					if count == 0 || now.Sub(last) >= apart {
						count, last = count+1, now
					}
				} else {
					row, count = nil, 0
				}
			default:
				lock = before.next(d, "!r", before.Conversation, "m", "", rapid.Bool().Draw(t, "person"), now)
				if lock != before && (before.Sure || !d.Sure || corrected) {
					t.Fatalf("moved in the middle of a conversation: from %+v to %+v by %+v", before, lock, d)
				}
				if lock != before {
					row, count, corrected = nil, 0, true
				}
			}
			if before.Sure && lock.Conversation == before.Conversation && lock.Tier != before.Tier {
				t.Fatalf("from %+v to %+v", before, lock)
			}
		}
	})
}
