package delivery

import (
	"context"

	"reverie/internal/store"
)

// Queues counts messages that wait or were given up.
type Queues struct {
	Inbox         int    `json:"inbox"` // unanswered messages
	InboxOldest   int64  `json:"inbox_oldest_s"`
	Outbox        int    `json:"outbox"` // unsent messages
	OutboxOldest  int64  `json:"outbox_oldest_s"`
	OutboxProblem string `json:"outbox_problem,omitempty"` // error of the oldest unsent message
	Dead          int    `json:"dead"`                     // outgoing messages given up
	DeadReason    string `json:"dead_reason,omitempty"`    // error of the newest of them
	Undecryptable int    `json:"undecryptable"`            // incoming messages that cannot be read yet
	UnreadOldest  int64  `json:"undecryptable_oldest_s"`
	Lost          int    `json:"lost"`                  // unreadable messages given up
	LostReason    string `json:"lost_reason,omitempty"` // error of the newest of them
}

// CountRows counts the inbox and outbox at the time now, in Unix milliseconds.
func CountRows(ctx context.Context, db store.DBTX, now int64) (c Queues, err error) {
	age := func(column, of string) string { // of the oldest row, in seconds; 0 if the queue is empty
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
	return c, store.Wrap(err, "delivery: count inbox and outbox")
}
