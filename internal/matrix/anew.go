package matrix

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// longWait is how old a notice may be that an answer takes the place of. Who waits for
// longer looks elsewhere, and clients tell nobody of an edit: then the answer is a
// message of its own, and the notice is taken back.
const longWait = time.Minute

// anewMark ends the transaction id of a message that is sent anew: under the old one the
// homeserver knows what is taken back.
const anewMark = "-anew"

// txn is the transaction id of the message's first event.
func (r outRow) txn() string {
	if r.anew {
		return r.id + anewMark
	}
	return r.id
}

// renew makes the message id a new one if all it has shown is a notice that stands for
// long. drafted tells whether its first event will carry a draft.
func (q *queue) renew(ctx context.Context, tx *sql.Tx, id string, drafted bool) error {
	const old = ` WHERE id = ? AND state = 'draft' AND kind = 'notice' AND anew = 0 AND created_at <= ?`
	before := q.now().Add(-longWait).UnixMilli()
	if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room) SELECT event_id, room FROM outbox`+old+` AND event_id <> ''`, id, before); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE outbox SET anew = 1, event_id = '', text = '', drafted = ?`+old, drafted, id, before)
	return err
}

// current returns e with the id of its message as the transaction id. ok is false when the
// message was sent anew since: then the event is to be taken back.
func (q *queue) current(ctx context.Context, tx *sql.Tx, e echo) (_ echo, ok bool, err error) {
	id, anew := strings.CutSuffix(e.txn, anewMark)
	var is bool
	err = tx.QueryRowContext(ctx, `SELECT anew FROM outbox WHERE id = ?`, id).Scan(&is)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return e, true, nil
	case err != nil:
		return e, false, err
	}
	e.txn = id
	if is == anew {
		return e, true, nil
	}
	_, err = tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room) SELECT ?, room FROM outbox WHERE id = ?`, e.event, id)
	return e, false, err
}
