package session

import (
	"context"
	"sync"
	"time"

	"reverie/internal/agent"
	"reverie/internal/tool"
)

// lanes let people go first: while a person waits for an answer of a model,
// background work asks that model nothing new.
type lanes struct {
	mu     sync.Mutex
	people map[string]int // who wait, by model
}

func newLanes() *lanes { return &lanes{people: map[string]int{}} }

// person says that a person waits for model, until leave is called.
func (l *lanes) person(model string) (leave func()) {
	l.add(model, 1)
	return func() { l.add(model, -1) }
}

// add changes how many wait for model, and says how many do.
func (l *lanes) add(model string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.people[model] += n
	return l.people[model]
}

const (
	lookAgain = 100 * time.Millisecond // whether a person still waits
	// mostYielded is how long background work stands back at one time. Then it asks
	// once: where people never stop talking, it would never end.
	mostYielded = 10 * time.Minute
)

// yield returns when no person waits for model, or ctx has ended.
func (l *lanes) yield(ctx context.Context, model string) error {
	for end := time.Now().Add(mostYielded); l.add(model, 0) > 0 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
	return ctx.Err()
}

// firstModel is the model that a role asks first.
func (m *Manager) firstModel(role string) string { return agent.FirstModel(m.cfg.Models, role) }

// Yield returns when no person waits for model, or ctx has ended.
func (m *Manager) Yield(ctx context.Context, model string) error { return m.lanes.yield(ctx, model) }

// spawner is what a turn's tools spawn with; nil = there are no sub-sessions.
func (m *Manager) spawner() tool.Spawner {
	if m.helpers == nil {
		return nil
	}
	return m.helpers
}
