package matrix

import (
	"context"
	"log/slog"
	"sync"
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

	mu     sync.Mutex
	forget func(ctx context.Context, event string) error // see OnRedaction; may be nil
}

// OnRedaction tells what forgets a message that was taken back. forget must be
// repeatable: it is called again, also after a restart, until it succeeds. To be
// called before Run.
func (c *Client) OnRedaction(forget func(ctx context.Context, event string) error) {
	c.redactions.mu.Lock()
	defer c.redactions.mu.Unlock()
	c.redactions.forget = forget
}

func (r *redactions) run(ctx context.Context) error {
	return retry.Loop(ctx, r.now, r.wake, func(ctx context.Context) (again time.Time) {
		r.mu.Lock()
		forget := r.forget
		r.mu.Unlock()
		if forget == nil {
			return again // it is kept until somebody cares
		}
		if err := r.inbox.ForgetRedacted(ctx, forget); err != nil && ctx.Err() == nil {
			r.log.Error("matrix: a message that was taken back is not forgotten yet; it is tried again", "in", redactionPause, "err", err)
			again = r.now().Add(redactionPause)
		}
		return again
	})
}
