package vector

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	cooldown     = 10 * time.Second // a server that failed is left alone by questions
	minBackoff   = time.Second      // after a failure; doubled each time
	maxBackoff   = 5 * time.Minute
	PollInterval = 10 * time.Second // LookAgain is how long Run rests that found nothing to do: other processes write, too
)

// Health is how an embedder or a server does. It tells the operator when that changes.
type Health struct {
	log                   *slog.Logger
	onFailure, onRecovery string // what it says

	mu           sync.Mutex
	failingSince time.Time // of its failing; zero = it is well
	lastFailure  time.Time // it failed
	reason       string
}

// NewHealth is well until it failed. bad and good are what the log then says.
func NewHealth(log *slog.Logger, bad, good string) *Health {
	return &Health{log: log, onFailure: bad, onRecovery: good}
}

// Failed notes a failure, and why.
func (h *Health) Failed(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failingSince.IsZero() {
		h.failingSince = now
		h.log.Warn(h.onFailure, "err", err)
	}
	h.lastFailure, h.reason = now, err.Error()
}

// Works notes that it works.
func (h *Health) Succeeded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.failingSince.IsZero() {
		h.log.Info(h.onRecovery)
	}
	h.failingSince, h.reason = time.Time{}, ""
}

// State says since when it fails, and why; zero = it is well.
func (h *Health) State() (since time.Time, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failingSince, h.reason
}

// Resting reports whether it failed just now.
func (h *Health) CoolingDown(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.failingSince.IsZero() && now.Sub(h.lastFailure) < cooldown
}

// Waker lets work in the background rest until there is something to do.
type Waker struct {
	wake  chan struct{}
	sleep func(context.Context, time.Duration) // until Wake
}

// NewWaker returns a Waker that nobody has woken.
func NewWaker() Waker {
	w := Waker{wake: make(chan struct{}, 1)}
	w.sleep = func(ctx context.Context, d time.Duration) {
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
	pause := minBackoff
	for ctx.Err() == nil {
		rest, err := do()
		if err == nil {
			pause = minBackoff
		} else {
			rest, pause = pause, min(2*pause, maxBackoff)
		}
		w.sleep(ctx, rest)
	}
	return nil
}
