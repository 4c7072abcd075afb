// Package idle lets work that nobody waits for give way to people.
package idle

import (
	"context"
	"sync"
	"time"
)

// Gate lets work begin when no message waits for its answer, in any room, and ends it when one
// comes.
type Gate struct {
	quiet time.Duration
	now   func() time.Time

	mu    sync.Mutex
	open  int       // messages that are not handled yet
	since time.Time // the last one was handled
	ends  map[*context.CancelFunc]bool
}

// New returns a Gate; quiet is how long nobody has said anything before Wait returns.
func New(quiet time.Duration, now func() time.Time) *Gate { return &Gate{quiet: quiet, now: now} }

// Arrived notes a message that waits for its answer, and ends the work.
func (g *Gate) Arrived() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
	for end := range g.ends {
		(*end)()
	}
}

// Handled notes that n messages need no more work.
func (g *Gate) Handled(n int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = max(0, g.open-n)
	g.since = now
}

// Begin returns a context that ends when somebody writes; ok is false while somebody waits, or
// has said something within quiet.
func (g *Gate) Begin(ctx context.Context, now time.Time, quiet time.Duration) (work context.Context, done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.since.Add(quiet).Sub(now); g.open > 0 || wait > 0 && wait <= quiet {
		return nil, nil, false
	}
	work, cancel := context.WithCancel(ctx)
	if g.ends == nil {
		g.ends = map[*context.CancelFunc]bool{}
	}
	g.ends[&cancel] = true
	return work, func() {
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.ends, &cancel)
	}, true
}

// Wait waits until nobody waits for an answer and nobody has said anything for a moment. The
// context it returns ends when somebody writes, in whatever room. done must be called.
func (g *Gate) Wait(ctx context.Context) (work context.Context, done func(), err error) {
	return g.After(ctx, g.quiet)
}

// After is Wait, where quiet is how long nobody has said anything.
func (g *Gate) After(ctx context.Context, quiet time.Duration) (work context.Context, done func(), err error) {
	for ctx.Err() == nil {
		if work, done, ok := g.Begin(ctx, g.now(), quiet); ok {
			return work, done, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(max(quiet/2, time.Millisecond), 30*time.Second)):
		}
	}
	return nil, nil, ctx.Err()
}
