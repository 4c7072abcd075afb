package matrix

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"reverie/internal/matrix/retry"
)

// Forget takes texts out of the copies of what was sent and heard, in tx. What waits to be
// sent stays as it is.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		escaped, _ := json.Marshal(t) //nolint:errchkjson // a string
		for _, in := range []struct{ query, text string }{
			{`UPDATE outbox SET text = replace(text, ?1, '[forgotten]') WHERE state IN ('sent', 'dead') AND instr(text, ?1) > 0`, t},
			{`UPDATE outbox SET poll = replace(poll, ?1, '[forgotten]') WHERE state IN ('sent', 'dead') AND instr(poll, ?1) > 0`, string(escaped[1 : len(escaped)-1])},
			{`UPDATE heard SET text = replace(text, ?1, '[forgotten]') WHERE instr(text, ?1) > 0`, t},
		} {
			if _, err := tx.ExecContext(ctx, in.query, in.text); err != nil {
				return fmt.Errorf("forget in what was sent and heard: %w", err)
			}
		}
	}
	return nil
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
	for {
		var event string
		err := c.q.db.QueryRowContext(ctx, `SELECT coalesce(min(event), '') FROM redaction`).Scan(&event)
		if err != nil || event == "" {
			return err
		}
		if err := c.handler.Redacted(ctx, event); err != nil {
			return err
		}
		if _, err := c.q.db.ExecContext(ctx, `DELETE FROM redaction WHERE event = ?`, event); err != nil {
			return err
		}
	}
}
