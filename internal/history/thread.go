package history

import (
	"context"
	"database/sql"

	"reverie/internal/store"
)

// BeginThread creates the thread c.Room, which starts with summary and details of c, if any. It
// sets ID and Conversation. It returns false, and changes nothing, for an existing thread.
func (s *Store) BeginThread(ctx context.Context, c *Compaction) (bool, error) {
	begun := false
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var err error
		begun, err = store.Found(tx.QueryRowContext(ctx, `INSERT INTO room (id, thread_of) VALUES (?, ?)
			ON CONFLICT DO NOTHING RETURNING conversation`, c.Room, c.Room.parent()).Scan(&c.Conversation))
		if begun && c.Text() != "" {
			c.Messages, c.Shortened = 0, 0
			err = c.insert(ctx, tx)
		}
		return err
	})
	return begun && err == nil, store.Wrap(err, "begin a thread")
}

// redactThreadRoot removes the text of event, a thread root, from the start of its threads. Their
// details hold only the root at first.
func redactThreadRoot(ctx context.Context, tx *sql.Tx, event string) error {
	quoted := map[Timeline]string{}
	err := store.Each(ctx, tx, func(row store.Row) error {
		var t Timeline
		var details string
		err := row.Scan(&t, &details)
		if t.Thread() == event {
			quoted[t] = details
		}
		return err
	}, `SELECT c.room, c.details FROM compaction AS c JOIN room AS r ON r.id = c.room
		WHERE r.thread_of <> '' AND c.reason = 'thread' AND c.details <> ''`)
	for t, said := range quoted {
		if err == nil {
			err = execAll(ctx, tx, statement{`UPDATE compaction SET details = '' WHERE room = ? AND reason = 'thread'`, []any{t}})
		}
		if err == nil {
			err = removeFromSummaries(ctx, tx, `room = ?1`, t, said)
		}
	}
	return store.Wrap(err, "redact the root of a thread")
}
