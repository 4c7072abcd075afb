package idle

import (
	"context"
	"sync"
	"time"
)

// Priority gives people priority. While a person waits for a model's answer, background work sends
// that model no new request.
type Priority struct {
	mu     sync.Mutex
	people map[string]int // how many wait, by model
}

// NewPriority returns a Priority.
func NewPriority() *Priority { return &Priority{people: map[string]int{}} }

// PersonWaits records that a person waits for model, until leave is called.
func (w *Priority) PersonWaits(model string) (leave func()) {
	w.add(model, 1)
	return func() { w.add(model, -1) }
}

// add changes the number of people who wait for model, and returns it.
func (w *Priority) add(model string, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.people[model] += n
	return w.people[model]
}

const (
	pollInterval = 100 * time.Millisecond // polling interval
	// maxYield limits one pause of background work. It then sends one request: with constant
	// talk it would never finish otherwise.
	maxYield = 10 * time.Minute
)

// Yield blocks until no person waits for model, or ctx ends.
func (w *Priority) Yield(ctx context.Context, model string) error {
	for end := time.Now().Add(maxYield); w.add(model, 0) > 0 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
	return ctx.Err()
}
