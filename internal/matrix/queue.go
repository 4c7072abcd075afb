package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/session"
)

// queue keeps both directions in bot.db: the inbox with the sync token, and
// the outbox whose row ids are the transaction ids.
type queue struct {
	db  *sql.DB
	now func() time.Time
}

// inRow is a message that passed the gate.
type inRow struct {
	seq int64
	session.Inbound
}

// outRow is a message of ours.
type outRow struct {
	id, room, kind, text, replyTo, state, eventID string
	drafted                                       bool
	revision, attempts                            int
	nextAt                                        time.Time
}

// echo is one of our own events seen in a sync: proof that it was accepted.
type echo struct{ txn, event string }

// inTx runs f in one transaction.
func (q *queue) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// token returns where the last sync of this device ended; empty at the start.
func (q *queue) token(ctx context.Context, user, device string) (string, error) {
	var t string
	err := q.db.QueryRowContext(ctx, `SELECT next_batch FROM matrix_sync WHERE user = ? AND device = ?`, user, device).Scan(&t)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("matrix: read sync token: %w", err)
	}
	return t, nil
}

// take stores all that a sync brought, together with the token that asks for
// the next one: either both are there or neither.
func (q *queue) take(ctx context.Context, user, device, next string, in []session.Inbound, echoes []echo) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		for _, e := range echoes {
			if err := q.echoed(ctx, tx, e); err != nil {
				return err
			}
		}
		for _, m := range in {
			if err := q.put(ctx, tx, m); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO matrix_sync (user, device, next_batch, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user, device) DO UPDATE SET next_batch = excluded.next_batch, at = excluded.at`,
			user, device, next, q.now().UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("matrix: store sync: %w", err)
	}
	return nil
}

// takeLate stores a message whose key came after its sync was done.
func (q *queue) takeLate(ctx context.Context, m session.Inbound) error {
	if err := q.inTx(ctx, func(tx *sql.Tx) error { return q.put(ctx, tx, m) }); err != nil {
		return fmt.Errorf("matrix: store message: %w", err)
	}
	return nil
}

func (q *queue) put(ctx context.Context, tx *sql.Tx, m session.Inbound) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO inbox (id, room, sender, sender_name, text, private, sent_at, received_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, m.ID, m.Room, m.Sender, m.SenderName, m.Text, m.Private, m.At.UnixMilli(), q.now().UnixMilli())
	return err
}

// echoed notes the event id of a message that we sent but whose answer we may
// never have read. When the event cannot be a draft, the message is sent.
func (q *queue) echoed(ctx context.Context, tx *sql.Tx, e echo) error {
	_, err := tx.ExecContext(ctx, `UPDATE outbox SET event_id = ?,
		state = CASE WHEN state = 'pending' AND drafted = 0 AND revision = 1 THEN 'sent' ELSE state END
		WHERE id = ? AND event_id = ''`, e.event, e.txn)
	return err
}

// waiting returns messages that still need an answer, oldest first, after seq.
func (q *queue) waiting(ctx context.Context, seq int64) ([]inRow, error) {
	rows, err := q.db.QueryContext(ctx, `SELECT seq, id, room, sender, sender_name, text, private, sent_at
		FROM inbox WHERE state = 'new' AND seq > ? ORDER BY seq LIMIT 100`, seq)
	if err != nil {
		return nil, fmt.Errorf("matrix: read inbox: %w", err)
	}
	defer rows.Close()
	var out []inRow
	for rows.Next() {
		var r inRow
		var at int64
		if err := rows.Scan(&r.seq, &r.ID, &r.Room, &r.Sender, &r.SenderName, &r.Text, &r.Private, &at); err != nil {
			return nil, fmt.Errorf("matrix: read inbox: %w", err)
		}
		r.At = time.UnixMilli(at)
		out = append(out, r)
	}
	return out, rows.Err()
}

// handled marks a message as done and drops its text: the session's history
// has it now, and here only the id is needed.
func (q *queue) handled(ctx context.Context, id string) error {
	if _, err := q.db.ExecContext(ctx, `UPDATE inbox SET state = 'done', text = '' WHERE id = ?`, id); err != nil {
		return fmt.Errorf("matrix: mark message as done: %w", err)
	}
	return nil
}

// asker is who wrote the inbound message id; empty when unknown.
func (q *queue) asker(ctx context.Context, id string) string {
	var s string
	_ = q.db.QueryRowContext(ctx, `SELECT sender FROM inbox WHERE id = ?`, id).Scan(&s) // unknown: nobody is mentioned
	return s
}

// say makes the rows of a final message durable, one for each part. A row that
// was sent before with the same text stays as it is.
func (q *queue) say(ctx context.Context, room string, m session.Outgoing, parts []string) error {
	kind := "text"
	if m.Notice {
		kind = "notice"
	}
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		for i, text := range parts {
			replyTo := m.ReplyTo
			if i > 0 {
				replyTo = "" // one mention is enough
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, reply_to, state, revision, created_at)
				VALUES (?, ?, ?, ?, ?, 'pending', 1, ?)
				ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, text = excluded.text, state = 'pending',
					revision = revision + 1, attempts = 0, next_at = 0, error = ''
				WHERE state NOT IN ('sent', 'pending') OR text <> excluded.text OR kind <> excluded.kind`,
				partID(m.ID, i), room, kind, text, replyTo, q.now().UnixMilli())
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("matrix: store reply: %w", err)
	}
	return nil
}

// partID names the parts of a message that is too large for one event.
func partID(id string, i int) string {
	if i == 0 {
		return id
	}
	return fmt.Sprintf("%s-%d", id, i+1)
}

// once stores a message only if that id was never used.
func (q *queue) once(ctx context.Context, id, room, text, replyTo string) (bool, error) {
	res, err := q.db.ExecContext(ctx, `INSERT OR IGNORE INTO outbox (id, room, kind, text, reply_to, state, revision, created_at)
		VALUES (?, ?, 'notice', ?, ?, 'pending', 1, ?)`, id, room, text, replyTo, q.now().UnixMilli())
	if err != nil {
		return false, fmt.Errorf("matrix: store notice: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

const outColumns = `id, room, kind, text, reply_to, state, event_id, drafted, revision, attempts, next_at`

func scanOut(s interface{ Scan(...any) error }) (r outRow, err error) {
	var next int64
	err = s.Scan(&r.id, &r.room, &r.kind, &r.text, &r.replyTo, &r.state, &r.eventID, &r.drafted, &r.revision, &r.attempts, &next)
	r.nextAt = time.UnixMilli(next)
	return r, err
}

// draft makes sure that a row for a draft exists before its first event is
// sent, and returns it. A row that is final already is returned as it is.
func (q *queue) draft(ctx context.Context, d *draft) (outRow, error) {
	kind := "text"
	if d.notice {
		kind = "notice"
	}
	_, err := q.db.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, reply_to, state, drafted, created_at) VALUES (?, ?, ?, ?, 'draft', 1, ?)
		ON CONFLICT (id) DO NOTHING`, d.id, d.room, kind, d.replyTo, q.now().UnixMilli())
	if err != nil {
		return outRow{}, fmt.Errorf("matrix: store draft: %w", err)
	}
	r, err := scanOut(q.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = ?`, d.id))
	if err != nil {
		return outRow{}, fmt.Errorf("matrix: read draft: %w", err)
	}
	return r, nil
}

// heads returns the oldest message of each room that is still to be sent.
func (q *queue) heads(ctx context.Context) ([]outRow, error) {
	rows, err := q.db.QueryContext(ctx, `SELECT `+outColumns+` FROM outbox
		WHERE seq IN (SELECT min(seq) FROM outbox WHERE state = 'pending' GROUP BY room) ORDER BY seq`)
	if err != nil {
		return nil, fmt.Errorf("matrix: read outbox: %w", err)
	}
	defer rows.Close()
	var out []outRow
	for rows.Next() {
		r, err := scanOut(rows)
		if err != nil {
			return nil, fmt.Errorf("matrix: read outbox: %w", err)
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// setEvent notes which event carries the message.
func (q *queue) setEvent(ctx context.Context, id, event string) error {
	return q.update(ctx, `UPDATE outbox SET event_id = ? WHERE id = ?`, event, id)
}

// sent marks a row as sent, unless it got a newer text meanwhile.
func (q *queue) sent(ctx context.Context, r outRow) error {
	return q.update(ctx, `UPDATE outbox SET state = 'sent', error = '' WHERE id = ? AND revision = ?`, r.id, r.revision)
}

// postpone notes a failure and when to try again.
func (q *queue) postpone(ctx context.Context, r outRow, at time.Time, why error) error {
	return q.update(ctx, `UPDATE outbox SET attempts = attempts + 1, next_at = ?, error = ? WHERE id = ? AND revision = ?`, at.UnixMilli(), why.Error(), r.id, r.revision)
}

// bury gives a message up.
func (q *queue) bury(ctx context.Context, r outRow, why error) error {
	return q.update(ctx, `UPDATE outbox SET state = 'dead', attempts = attempts + 1, error = ? WHERE id = ? AND revision = ?`, why.Error(), r.id, r.revision)
}

func (q *queue) update(ctx context.Context, query string, args ...any) error {
	if _, err := q.db.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("matrix: update outbox: %w", err)
	}
	return nil
}

// ours tells whether we sent that event.
func (q *queue) ours(ctx context.Context, event string) bool {
	var n int
	_ = q.db.QueryRowContext(ctx, `SELECT count(*) FROM outbox WHERE event_id = ?`, event).Scan(&n) // on error: not ours, a mention still works
	return n > 0
}

// leave drops what was on its way in or out of a room we are no longer in.
func (q *queue) leave(ctx context.Context, room string) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE inbox SET state = 'done', text = '' WHERE room = ? AND state = 'new'`, room); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE outbox SET state = 'dead', error = 'no longer in this room' WHERE room = ? AND state IN ('draft', 'pending')`, room)
		return err
	})
	if err != nil {
		return fmt.Errorf("matrix: clear queues of a room: %w", err)
	}
	return nil
}

// counts of both queues.
type counts struct{ inbox, outbox, dead int }

func (q *queue) counts(ctx context.Context) (n counts, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM inbox WHERE state = 'new'),
		(SELECT count(*) FROM outbox WHERE state = 'pending'), (SELECT count(*) FROM outbox WHERE state = 'dead')`).Scan(&n.inbox, &n.outbox, &n.dead)
	if err != nil {
		err = fmt.Errorf("matrix: count queues: %w", err)
	}
	return n, err
}
