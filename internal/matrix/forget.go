package matrix

import (
	"context"
	"log/slog"
	"time"

	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
)

// redactionPause is how long a forgetting that failed waits to be tried again.
const redactionPause = time.Minute

// redactions has forgotten what was taken back.
type redactions struct {
	inbox *delivery.Inbox
	log   *slog.Logger
	now   func() time.Time
	wake  chan struct{}
}

func (r *redactions) run(ctx context.Context, forget func(ctx context.Context, event string) error) error {
	return retry.Loop(ctx, r.now, r.wake, func(ctx context.Context) (again time.Time) {
		if err := r.inbox.ForgetRedacted(ctx, forget); err != nil && ctx.Err() == nil {
			r.log.Error("matrix: a message that was taken back is not forgotten yet; it is tried again", "in", redactionPause, "err", err)
			again = r.now().Add(redactionPause)
		}
		return again
	})
}
