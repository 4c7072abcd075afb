package matrix

import (
	"context"
	"time"

	"reverie/internal/matrix/retry"
)

// OnRedaction tells what forgets a message that was taken back. forget must be
// repeatable: it is called again, also after a restart, until it succeeds. To be
// called before Run.
func (c *Client) OnRedaction(forget func(ctx context.Context, event string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takenBack = forget
}

// redactionPause is how long a forgetting that failed waits to be tried again.
const redactionPause = time.Minute

// runRedactions has forgotten what was taken back.
func (c *Client) runRedactions(ctx context.Context) error {
	return retry.Loop(ctx, c.now, c.goneWake, func(ctx context.Context) (again time.Time) {
		if err := c.redactions(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("matrix: a message that was taken back is not forgotten yet; it is tried again", "in", redactionPause, "err", err)
			again = c.now().Add(redactionPause)
		}
		return again
	})
}

func (c *Client) redactions(ctx context.Context) error {
	c.mu.Lock()
	forget := c.takenBack
	c.mu.Unlock()
	if forget == nil {
		return nil // it is kept until somebody cares
	}
	return c.inbox.ForgetRedacted(ctx, forget)
}
