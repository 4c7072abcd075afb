package session

import (
	"context"
	"sync"
	"time"
)

// lanes let people go first: while a person waits for an answer of a model,
// background work asks that model nothing new.
type lanes struct {
	mu      sync.Mutex
	people  map[string]int // who wait, by model
	changed chan struct{}  // closed when somebody no longer waits
}

func newLanes() *lanes { return &lanes{people: map[string]int{}, changed: make(chan struct{})} }

// person says that a person waits for model, until leave is called.
func (l *lanes) person(model string) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.people[model]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.people[model]--; l.people[model] == 0 {
			delete(l.people, model)
			close(l.changed)
			l.changed = make(chan struct{})
		}
	}
}

// mostYielded is how long background work stands back at one time. Then it asks
// once: where people never stop talking, it would never end.
const mostYielded = 10 * time.Minute

// yield returns when no person waits for model, or ctx has ended.
func (l *lanes) yield(ctx context.Context, model string) error {
	enough := time.After(mostYielded)
	for {
		l.mu.Lock()
		waits, changed := l.people[model] > 0, l.changed
		l.mu.Unlock()
		if !waits {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// firstModel is the model that a role asks first.
func (m *Manager) firstModel(role string) string {
	if names := m.cfg.Models.Role(role); len(names) > 0 {
		return names[0]
	}
	return ""
}
