package matrix

import (
	"testing"
	"time"
)

// Waiting grows and is not the same for everybody.
// Holds F1.
func TestBackoffGrowsWithJitter(t *testing.T) {
	for attempt := range 12 {
		longest := min(time.Second<<attempt, maxWait)
		seen := map[time.Duration]bool{}
		for range 50 {
			d := backoff(attempt)
			if d < longest/2 || d > longest {
				t.Fatalf("backoff(%d) = %s, want between %s and %s", attempt, d, longest/2, longest)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("backoff(%d) is one of %d values", attempt, len(seen))
		}
	}
}
