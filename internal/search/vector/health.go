package vector

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	cooldown     = 10 * time.Second // queries do not use a server for so long after a failure
	minBackoff   = time.Second      // after a failure; doubled each time
	maxBackoff   = 5 * time.Minute
	PollInterval = 10 * time.Second // PollInterval is how often an idle Run checks for changes by other processes.
)

// Health is a circuit breaker for an embedder or a server. It logs each change of state.
type Health struct {
	log                   *slog.Logger
	onFailure, onRecovery string // log messages

	mu           sync.Mutex
	failingSince time.Time // zero = healthy
	lastFailure  time.Time
	reason       string
}

// NewHealth returns a healthy state. onFailure and onRecovery are the log messages.
func NewHealth(log *slog.Logger, bad, good string) *Health {
	return &Health{log: log, onFailure: bad, onRecovery: good}
}

// Failed records a failure.
func (h *Health) Failed(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failingSince.IsZero() {
		h.failingSince = now
		h.log.Warn(h.onFailure, "err", err)
	}
	h.lastFailure, h.reason = now, err.Error()
}

// Succeeded records a success.
func (h *Health) Succeeded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.failingSince.IsZero() {
		h.log.Info(h.onRecovery)
	}
	h.failingSince, h.reason = time.Time{}, ""
}

// State returns since when it fails, and the last error; zero = it is healthy.
func (h *Health) State() (since time.Time, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failingSince, h.reason
}

// CoolingDown reports whether the last failure is less than cooldown ago.
func (h *Health) CoolingDown(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.failingSince.IsZero() && now.Sub(h.lastFailure) < cooldown
}

// Waker makes a background loop sleep until it is woken.
type Waker struct {
	wake  chan struct{}
	sleep func(context.Context, time.Duration) // returns early after Wake
}

// NewWaker returns a Waker that has not been woken.
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

// Wake tells Run that there may be work. It never blocks.
func (w Waker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Repeat calls do until ctx ends and sleeps in between as long as do returns. While do fails, the
// sleep doubles up to maxBackoff.
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
