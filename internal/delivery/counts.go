package delivery

import (
	"context"

	"reverie/internal/store"
)

// Counts is what waits in the inbox and the outbox, and what was given up.
type Counts struct {
	Inbox, Unreadable, Lost int // messages without an answer, that wait to be read, that were given up
	Outbox, Dead            int // messages not sent yet, and given up

	InboxOldest, UnreadableOldest, OutboxOldest int64 // in seconds

	LostReason, DeadReason string // why the newest was given up
	OutboxReason           string // why the oldest was not sent
}

// CountRows counts what is in the inbox and the outbox at the time now, in Unix milliseconds.
func CountRows(ctx context.Context, db store.DBTX, now int64) (c Counts, err error) {
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
		(SELECT count(*) FROM outbox WHERE state = 'dead' AND error <> 'taken back'),
		coalesce((SELECT error FROM outbox WHERE state = 'dead' AND error <> 'taken back' ORDER BY created_at DESC LIMIT 1), '')`, now).
		Scan(&c.Inbox, &c.InboxOldest, &c.Unreadable, &c.UnreadableOldest, &c.Lost, &c.LostReason,
			&c.Outbox, &c.OutboxOldest, &c.OutboxReason, &c.Dead, &c.DeadReason)
	return c, doing("count what is in the inbox and the outbox", err)
}
