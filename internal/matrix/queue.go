package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// queue keeps both directions in bot.db: the inbox with the sync token, and
// the outbox whose row ids are the transaction ids.
type queue struct {
	db  *sql.DB
	now func() time.Time
}

// outRow is a message of ours.
type outRow struct {
	id, room, kind, text, replyTo, state, eventID string
	mention, thread, file                         string
	poll                                          string // see packPoll
	drafted, closed                               bool
	revision, attempts, generation                int
	nextAt                                        time.Time
}

// echo is one of our own events seen in a sync: proof that it was accepted.
type echo struct{ txn, event string }

// inTx runs f in one transaction.
func (q *queue) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	return store.InTx(ctx, q.db, f)
}

// doing adds to an error what was being done; no error stays none.
func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// value reads a value from the only column of a row; it is zero when there is no row.
func value[T any](ctx context.Context, db store.DBTX, query string, args ...any) (v T, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return v, err
}

// echoed notes the event id of a message that we sent but whose answer we may
// never have read. When the event cannot be a draft, the message is sent.
func (q *queue) echoed(ctx context.Context, tx *sql.Tx, e echo) error {
	if err := q.takenTwice(ctx, tx, e); err != nil {
		return err
	}
	id, generation := ofTxn(e.txn)
	done, err := tx.ExecContext(ctx, `UPDATE outbox SET event_id = ?,
		state = CASE WHEN state = 'pending' AND drafted = 0 AND revision = 1 THEN 'sent' ELSE state END
		WHERE id = ? AND generation = ? AND event_id = ''`, e.event, id, generation)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	return q.spokeIn(ctx, tx, id, e.event)
}

// say makes the rows of a final message durable: its own, which reads text, and that of the file
// with all of it. A row that was sent before with the same text stays as it is,
// and so does a file that is known already, and its caption. A poll only ever closes.
func (q *queue) say(ctx context.Context, room string, m chat.Outgoing, text, file string, whole *outRow, with ...func(context.Context, *sql.Tx) error) error {
	kind := "text"
	if m.Notice {
		kind = "notice"
	}
	asks, err := packPoll(m)
	if err != nil {
		return err
	}
	err = q.inTx(ctx, func(tx *sql.Tx) error {
		for _, store := range with {
			if err := store(ctx, tx); err != nil {
				return err
			}
		}
		if !m.Notice {
			if err := q.renew(ctx, tx, m.ID, false); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, reply_to, mention, file, poll, thread, state, revision, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, `+threadOf+`, 'pending', 1, ?)
			ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, text = excluded.text, closed = outbox.poll <> '', state = 'pending',
				revision = revision + 1, attempts = 0, next_at = 0, error = ''
			WHERE file = '' AND (outbox.poll = '' OR excluded.poll = '')
				AND (state NOT IN ('sent', 'pending') OR text <> excluded.text OR kind <> excluded.kind OR outbox.poll <> '' AND closed = 0)`,
			m.ID, room, kind, text, m.ReplyTo, strings.Join(m.Mention, " "), file, asks, m.Thread, m.ReplyTo, q.now().UnixMilli())
		if err != nil {
			return err
		}
		kept := ""
		if whole != nil {
			kept = whole.id
			if err := q.putWhole(ctx, tx, room, kind, m, whole); err != nil {
				return err
			}
		}
		// What a tool sent stands; a file with all of what the message read before goes.
		return q.remove(ctx, tx, partsOf+` AND substr(id, length(?1) + 1, length(?2)) <> ?2 AND (?3 = '' OR substr(id, 1, length(?3)) <> ?3)`,
			m.ID, chat.SentMark, kept)
	})
	return doing("matrix: store reply", err)
}

// threadOf is the thread of a message of ours: the one that is named (the first parameter),
// or that in which the message that it answers (the second one) is to be answered.
const threadOf = `coalesce(nullif(?, ''), (SELECT branch FROM inbox WHERE id = ?), '')`

// once stores a notice unless its id was used before.
func (q *queue) once(ctx context.Context, tx *sql.Tx, n notice) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO outbox (id, room, kind, text, reply_to, thread, state, revision, created_at)
		VALUES (?, ?, 'notice', ?, ?, `+threadOf+`, 'pending', 1, ?)`, n.id, n.room, n.text, n.replyTo, n.thread, n.replyTo, q.now().UnixMilli())
	return err
}

const outColumns = `id, room, kind, text, reply_to, mention, thread, file, poll, closed, state, event_id, drafted, revision, attempts, next_at, generation`

func scanOut(s store.Row) (r outRow, err error) {
	var next int64
	err = s.Scan(&r.id, &r.room, &r.kind, &r.text, &r.replyTo, &r.mention, &r.thread, &r.file, &r.poll, &r.closed, &r.state, &r.eventID, &r.drafted, &r.revision, &r.attempts, &next, &r.generation)
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
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		if !d.notice {
			if err := q.renew(ctx, tx, d.id, true); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, reply_to, thread, state, drafted, created_at) VALUES (?, ?, ?, ?, `+threadOf+`, 'draft', 1, ?)
			ON CONFLICT (id) DO UPDATE SET kind = excluded.kind WHERE state = 'draft' AND kind <> excluded.kind`, d.id, d.room, kind, d.replyTo, d.thread, d.replyTo, q.now().UnixMilli())
		return err
	})
	if err != nil {
		return outRow{}, fmt.Errorf("matrix: store draft: %w", err)
	}
	r, err := scanOut(q.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = ?`, d.id))
	return r, doing("matrix: read draft", err)
}

// heads returns the oldest message of each room that is still to be sent.
func (q *queue) heads(ctx context.Context) ([]outRow, error) {
	rows, err := store.List(ctx, q.db, scanOut, `SELECT `+outColumns+` FROM outbox
		WHERE seq IN (SELECT min(seq) FROM outbox WHERE state = 'pending' GROUP BY room) ORDER BY seq`)
	return rows, doing("matrix: read outbox", err)
}

// delivered notes which event carries the message, and returns the one that does: a sync may
// have shown an earlier one while this one was being sent. With whole the event says all that
// the row does, so that the row is sent.
func (q *queue) delivered(ctx context.Context, r outRow, event string, whole bool) (carrier string, err error) {
	if whole { // a sync may have shown it meanwhile, and then nothing is left to be noted
		var state string
		err := q.db.QueryRowContext(ctx, `SELECT state FROM outbox WHERE id = ? AND generation = ? AND revision = ? AND event_id = ?`, r.id, r.generation, r.revision, event).Scan(&state)
		if err == nil && state == "sent" {
			return event, nil
		}
	}
	err = q.inTx(ctx, func(tx *sql.Tx) error {
		if err := q.takenTwice(ctx, tx, echo{txn: r.txn(), event: event}); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, `UPDATE outbox SET event_id = CASE event_id WHEN '' THEN ?1 ELSE event_id END,
			state = iif(?4 AND revision = ?5, 'sent', state), error = iif(?4 AND revision = ?5, '', error)
			WHERE id = ?2 AND generation = ?3 RETURNING event_id`, event, r.id, r.generation, whole, r.revision).Scan(&carrier)
		if errors.Is(err, sql.ErrNoRows) {
			carrier, err = event, nil
		}
		if err != nil {
			return err
		}
		return q.spokeIn(ctx, tx, r.id, carrier)
	})
	return carrier, doing("matrix: update outbox", err)
}

// sent marks a row as sent, unless it got a newer text meanwhile.
func (q *queue) sent(ctx context.Context, r outRow) error {
	return q.update(ctx, `UPDATE outbox SET state = 'sent', error = '' WHERE id = ? AND revision = ? AND generation = ?`, r.id, r.revision, r.generation)
}

// postpone notes a failure and when to try again.
// What is stored is rounded up to the millisecond: a homeserver that asks for two
// seconds gets two.
func (q *queue) postpone(ctx context.Context, r outRow, at time.Time, why error) error {
	return q.update(ctx, `UPDATE outbox SET attempts = attempts + 1, next_at = ?, error = ? WHERE id = ? AND revision = ? AND generation = ?`, at.Add(time.Millisecond-1).UnixMilli(), why.Error(), r.id, r.revision, r.generation)
}

// bury gives a message up.
func (q *queue) bury(ctx context.Context, r outRow, why error) error {
	return q.update(ctx, `UPDATE outbox SET state = 'dead', attempts = attempts + 1, error = ? WHERE id = ? AND revision = ? AND generation = ?`, why.Error(), r.id, r.revision, r.generation)
}

func (q *queue) update(ctx context.Context, query string, args ...any) error {
	_, err := q.db.ExecContext(ctx, query, args...)
	return doing("matrix: update outbox", err)
}

// ours tells whether we sent that event.
func (q *queue) ours(ctx context.Context, event string) (bool, error) {
	ours, err := value[bool](ctx, q.db, `SELECT EXISTS (SELECT 1 FROM outbox WHERE event_id = ?1) OR EXISTS (SELECT 1 FROM takeback WHERE event_id = ?1)`, event)
	return ours, doing("matrix: look into the outbox", err)
}

// leave drops what was on its way in or out of a room we are no longer in. What
// was asked there counts as taken back: nobody could read the answer.
func (q *queue) leave(ctx context.Context, room string) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE inbox SET state = 'redacted', text = '', raw = '', brought = '' WHERE room = ? AND state IN ('new', 'utd', 'failed')`, room); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM heard WHERE room = ?`, room); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE outbox SET state = 'dead', error = 'no longer in this room' WHERE room = ? AND state IN ('draft', 'pending')`, room)
		return err
	})
	return doing("matrix: clear queues of a room", err)
}

// draftsLeft returns the drafts of an earlier run.
func (q *queue) draftsLeft(ctx context.Context) ([]outRow, error) {
	rows, err := store.List(ctx, q.db, scanOut, `SELECT `+outColumns+` FROM outbox WHERE state = 'draft'
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE (inbox.id = outbox.reply_to OR inbox.change = 'taken back' AND inbox.target = outbox.reply_to) AND inbox.state = 'new') ORDER BY seq`)
	return rows, doing("matrix: read drafts", err)
}

// endDraft makes what a draft shows its final text, or forgets it when it may
// never have been shown.
func (q *queue) endDraft(ctx context.Context, r outRow, text string) error {
	if r.eventID == "" {
		return q.update(ctx, `UPDATE outbox SET state = 'dead', error = 'interrupted before it was shown' WHERE id = ? AND state = 'draft'`, r.id)
	}
	if r.kind == "notice" { // it only said that an answer takes long
		return q.inTx(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room, reason) VALUES (?, ?, 'why.sent_twice')`, r.eventID, r.room); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `UPDATE outbox SET state = 'dead', error = 'nobody waits for it' WHERE id = ? AND state = 'draft'`, r.id)
			return err
		})
	}
	return q.update(ctx, `UPDATE outbox SET state = 'pending', text = ?, revision = 1 WHERE id = ? AND state = 'draft'`, text, r.id)
}

// setShown notes what a draft reads like now.
func (q *queue) setShown(ctx context.Context, id, text string) error {
	return q.update(ctx, `UPDATE outbox SET text = ? WHERE id = ? AND state = 'draft'`, text, id)
}

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
