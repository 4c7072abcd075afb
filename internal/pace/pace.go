// Package pace waits: for a time, for a signal, or for the end.
package pace

import (
	"context"
	"math"
	"time"
)

// Wake signals a waiting loop. Signals of a loop that is not waiting are combined into one.
func Wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// RunWhenDue calls f whenever it is woken, and at the time that f returned; zero means no time. It returns
// when ctx ends.
func RunWhenDue(ctx context.Context, now func() time.Time, wake <-chan struct{}, f func(context.Context) time.Time) error {
	for {
		wait := time.Duration(math.MaxInt64)
		if next := f(ctx); !next.IsZero() {
			wait = max(next.Sub(now()), 10*time.Millisecond)
		}
		if err := Pause(ctx, wake, wait); err != nil {
			return err
		}
	}
}

// Earlier returns the earlier one of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Pause waits for long or until it is woken. It returns the error of ctx.
func Pause(ctx context.Context, wake <-chan struct{}, long time.Duration) error {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(long):
	}
	return ctx.Err()
}
