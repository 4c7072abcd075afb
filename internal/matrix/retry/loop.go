package retry

import (
	"context"
	"math"
	"time"
)

// Wake wakes a loop that may be waiting; one call is enough for any number of
// reasons to look.
func Wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Loop calls f again and again: when it is woken, and at the time that f returns; a zero
// time is never. It ends with ctx.
func Loop(ctx context.Context, now func() time.Time, wake <-chan struct{}, f func(context.Context) time.Time) error {
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

// Earlier is the earlier one of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Pause waits for that long, or until it is woken. The error is that of ctx, if it ends.
func Pause(ctx context.Context, wake <-chan struct{}, long time.Duration) error {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(long):
	}
	return ctx.Err()
}
