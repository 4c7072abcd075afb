// Package idle makes background work give way to people.
//
// Gate is for work that must not run while messages are being answered, such as a dream: it starts
// in a pause and is cancelled by a new message. Priority is for single model requests in the
// background: they are postponed while a person waits for that model.
package idle

import (
	"context"
	"sync"
	"time"
)

// Gate lets work start when no message waits for its answer in any room. A new message cancels it.
type Gate struct {
	quiet time.Duration
	now   func() time.Time

	mu          sync.Mutex
	unanswered  int       // messages not handled yet
	lastHandled time.Time // when the last message was handled
	ends        map[*context.CancelFunc]bool
}

// New returns a Gate. quiet is the pause before Wait returns.
func New(quiet time.Duration, now func() time.Time) *Gate { return &Gate{quiet: quiet, now: now} }

// Arrived records a message that waits for its answer, and cancels the work.
func (g *Gate) Arrived() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unanswered++
	for end := range g.ends {
		(*end)()
	}
}

// Handled records that n messages are done.
func (g *Gate) Handled(n int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unanswered = max(0, g.unanswered-n)
	g.lastHandled = now
}

// Begin returns a context that a new message cancels. ok is false while a message waits for its
// answer, or until quiet has passed since the last one.
func (g *Gate) Begin(ctx context.Context, now time.Time, quiet time.Duration) (work context.Context, done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.lastHandled.Add(quiet).Sub(now); g.unanswered > 0 || wait > 0 && wait <= quiet {
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

// Wait blocks until no message waits for its answer and the quiet pause has passed. A new message
// in any room cancels the returned context. The caller must call done.
func (g *Gate) Wait(ctx context.Context) (work context.Context, done func(), err error) {
	return g.WaitQuiet(ctx, g.quiet)
}

// WaitQuiet is Wait with another pause.
func (g *Gate) WaitQuiet(ctx context.Context, quiet time.Duration) (work context.Context, done func(), err error) {
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
