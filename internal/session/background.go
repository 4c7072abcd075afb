package session

import (
	"context"
	"sync"
	"time"
)

// background lets work that nobody waits for give way to people: it begins when no
// message waits for its answer, in any room, and ends when one comes.
type background struct {
	mu    sync.Mutex
	open  int       // messages that are not handled yet
	since time.Time // the last one was handled
	ends  map[*context.CancelFunc]bool
}

// arrived ends what is done in the background.
func (b *background) arrived() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
	for end := range b.ends {
		(*end)()
	}
}

// handled notes that n messages need no more work.
func (b *background) handled(n int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = max(0, b.open-n)
	b.since = now
}

// begin returns a context that ends when somebody writes; ok is false while somebody waits, or
// has said something within quiet.
func (b *background) begin(ctx context.Context, now time.Time, quiet time.Duration) (work context.Context, done func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.since.Add(quiet).Sub(now); b.open > 0 || wait > 0 && wait <= quiet {
		return nil, nil, false
	}
	work, cancel := context.WithCancel(ctx)
	if b.ends == nil {
		b.ends = map[*context.CancelFunc]bool{}
	}
	b.ends[&cancel] = true
	return work, func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.ends, &cancel)
	}, true
}

// Background waits until nobody waits for an answer and nobody has said anything for a moment. The
// context it returns ends when somebody writes, in whatever room. done must be called.
func (m *Manager) Background(ctx context.Context) (work context.Context, done func(), err error) {
	return m.After(ctx, m.cfg.Quiet)
}

// After is Background, where quiet is how long nobody has said anything.
func (m *Manager) After(ctx context.Context, quiet time.Duration) (work context.Context, done func(), err error) {
	for {
		work, done, ok := m.background.begin(ctx, m.cfg.Now(), quiet)
		if ok {
			return work, done, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(min(max(quiet/2, time.Millisecond), 30*time.Second)):
		}
	}
}

// leaving says that messages are about to leave the prompt, so that what is worth it is
// remembered before long. It does not wait for that: they stay in the database.
func (s *Session) leaving() {
	if s.cfg.Leaving != nil {
		s.cfg.Leaving(string(s.talk))
	}
}
