package matrix

import (
	"context"
	"time"

	"reverie/internal/matrix/retry"
)

// redactionPause is how long a forgetting that failed waits to be tried again.
const redactionPause = time.Minute

// runRedactions has forgotten what was taken back.
func (c *Client) runRedactions(ctx context.Context) error {
	return retry.Loop(ctx, c.now, c.goneWake, func(ctx context.Context) (again time.Time) {
		if err := c.inbox.ForgetRedacted(ctx, c.handler.Redacted); err != nil && ctx.Err() == nil {
			c.log.Error("matrix: a message that was taken back is not forgotten yet; it is tried again", "in", redactionPause, "err", err)
			again = c.now().Add(redactionPause)
		}
		return again
	})
}
