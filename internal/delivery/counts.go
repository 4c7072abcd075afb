package delivery

import (
	"context"

	"reverie/internal/store"
)

// Queues is what waits to be answered, sent or read, and what was given up.
type Queues struct {
	Inbox         int    `json:"inbox"` // messages without an answer
	InboxOldest   int64  `json:"inbox_oldest_s"`
	Outbox        int    `json:"outbox"` // messages not sent yet
	OutboxOldest  int64  `json:"outbox_oldest_s"`
	OutboxProblem string `json:"outbox_problem,omitempty"` // why the oldest of them was not sent
	Dead          int    `json:"dead"`                     // messages given up
	DeadReason    string `json:"dead_reason,omitempty"`    // why the newest of them was given up
	Undecryptable int    `json:"undecryptable"`            // messages that wait to be read
	UnreadOldest  int64  `json:"undecryptable_oldest_s"`
	Lost          int    `json:"lost"`                  // messages that could not be read and were given up
	LostReason    string `json:"lost_reason,omitempty"` // why the newest of them was given up
}

// CountRows counts what is in the inbox and the outbox at the time now, in Unix milliseconds.
func CountRows(ctx context.Context, db store.DBTX, now int64) (c Queues, err error) {
	age := func(column, of string) string { // in seconds of the oldest; 0 when there is none
		return `(SELECT coalesce(max(0, (?1 - min(` + column + `)) / 1000), 0) FROM ` + of + `)`
	}
	err = db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM inbox WHERE state = 'new'), `+age(`received_at`, `inbox WHERE state = 'new'`)+`,
		(SELECT count(*) FROM inbox WHERE state IN ('utd', 'failed')), `+age(`received_at`, `inbox WHERE state IN ('utd', 'failed')`)+`,
		(SELECT count(*) FROM inbox WHERE state = 'dead'),
		coalesce((SELECT error FROM inbox WHERE state = 'dead' ORDER BY received_at DESC LIMIT 1), ''),
		(SELECT count(*) FROM outbox WHERE state = 'pending'), `+age(`created_at`, `outbox WHERE state = 'pending'`)+`,
		coalesce((SELECT error FROM outbox WHERE state = 'pending' ORDER BY created_at, seq LIMIT 1), ''),
		(SELECT count(*) FROM outbox WHERE state = 'dead' AND error <> 'redacted'),
		coalesce((SELECT error FROM outbox WHERE state = 'dead' AND error <> 'redacted' ORDER BY created_at DESC LIMIT 1), '')`, now).
		Scan(&c.Inbox, &c.InboxOldest, &c.Undecryptable, &c.UnreadOldest, &c.Lost, &c.LostReason,
			&c.Outbox, &c.OutboxOldest, &c.OutboxProblem, &c.Dead, &c.DeadReason)
	return c, store.Wrap(err, "delivery: count what is in the inbox and the outbox")
}
