package vector

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	shyness    = 10 * time.Second // a server that failed is left alone by questions
	firstPause = time.Second      // after a failure; doubled each time
	lastPause  = 5 * time.Minute
	LookAgain  = 10 * time.Second // LookAgain is how long Run rests that found nothing to do: other processes write, too
)

// Health is how an embedder or a server does. It tells the operator when that changes.
type Health struct {
	log       *slog.Logger
	bad, good string // what it says

	mu     sync.Mutex
	since  time.Time // of its failing; zero = it is well
	last   time.Time // it failed
	reason string
}

// NewHealth is well until it failed. bad and good are what the log then says.
func NewHealth(log *slog.Logger, bad, good string) *Health {
	return &Health{log: log, bad: bad, good: good}
}

// Failed notes a failure, and why.
func (h *Health) Failed(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = now
		h.log.Warn(h.bad, "err", err)
	}
	h.last, h.reason = now, err.Error()
}

// Works notes that it works.
func (h *Health) Works() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.since.IsZero() {
		h.log.Info(h.good)
	}
	h.since, h.reason = time.Time{}, ""
}

// State says since when it fails, and why; zero = it is well.
func (h *Health) State() (since time.Time, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.reason
}

// Resting reports whether it failed just now.
func (h *Health) Resting(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.since.IsZero() && now.Sub(h.last) < shyness
}

// Waker lets work in the background rest until there is something to do.
type Waker struct {
	wake chan struct{}
	nap  func(context.Context, time.Duration) // until Wake
}

// NewWaker returns a Waker that nobody has woken.
func NewWaker() Waker {
	w := Waker{wake: make(chan struct{}, 1)}
	w.nap = func(ctx context.Context, d time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		select {
		case <-ctx.Done():
		case <-w.wake:
		}
	}
	return w
}

// Wake tells Run that there may be something to do. It never blocks.
func (w Waker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Repeat calls do until ctx ends, and rests in between as long as do says. While it fails
// it is called ever more rarely.
func (w Waker) Repeat(ctx context.Context, do func() (time.Duration, error)) error {
	pause := firstPause
	for ctx.Err() == nil {
		rest, err := do()
		if err == nil {
			pause = firstPause
		} else {
			rest, pause = pause, min(2*pause, lastPause)
		}
		w.nap(ctx, rest)
	}
	return nil
}
