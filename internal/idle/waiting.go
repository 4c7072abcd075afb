package idle

import (
	"context"
	"sync"
	"time"
)

// Waiting lets people go first: while a person waits for an answer of a model,
// background work asks that model nothing new.
type Waiting struct {
	mu     sync.Mutex
	people map[string]int // who wait, by model
}

// NewWaiting returns a Waiting; nobody waits.
func NewWaiting() *Waiting { return &Waiting{people: map[string]int{}} }

// Person says that a person waits for model, until leave is called.
func (w *Waiting) Person(model string) (leave func()) {
	w.add(model, 1)
	return func() { w.add(model, -1) }
}

// add changes how many wait for model, and says how many do.
func (w *Waiting) add(model string, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.people[model] += n
	return w.people[model]
}

const (
	lookAgain = 100 * time.Millisecond // whether a person still waits
	// mostYielded is how long background work stands back at one time. Then it asks
	// once: where people never stop talking, it would never end.
	mostYielded = 10 * time.Minute
)

// Yield returns when no person waits for model, or ctx has ended.
func (w *Waiting) Yield(ctx context.Context, model string) error {
	for end := time.Now().Add(mostYielded); w.add(model, 0) > 0 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
	return ctx.Err()
}
