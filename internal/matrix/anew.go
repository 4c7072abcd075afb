package matrix

import (
	"context"
	"database/sql"
	"time"
)

// longWait is how old a notice may be that an answer takes the place of. Who waits for
// longer looks elsewhere, and clients tell nobody of an edit: then the answer is a
// message of its own, and the notice is taken back.
const longWait = time.Minute

// renew has the message id carried by another event if all it has shown is a notice that
// stands for long. drafted tells whether the new event will carry a draft.
func (q *queue) renew(ctx context.Context, tx *sql.Tx, id string, drafted bool) error {
	const old = ` WHERE id = ? AND state = 'draft' AND kind = 'notice' AND created_at <= ?`
	before := q.now().Add(-longWait).UnixMilli()
	if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room, reason) SELECT event_id, room, 'why.not_needed' FROM outbox`+old+` AND event_id <> ''`, id, before); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE outbox SET generation = generation + 1, event_id = '', text = '', drafted = ?`+old, drafted, id, before)
	return err
}
