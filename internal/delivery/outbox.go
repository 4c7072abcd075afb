package delivery

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Outbox holds the messages of the bot. The states of a row:
//
//	Draft ──────────► draft ── Say, EndDrafts ┐
//	                    │                     ▼
//	Say, Notify ────────┼─────────────────► pending ── Delivered, Sent, echo ──► sent
//	                    │                   │  ▲  ▲                               │
//	                    │         MarkDead, │  │  └────── Say with another text ──┤
//	                    │         Leave     ▼  │ Say                              │
//	                    └─ EndDrafts, ───► dead ◄──────────── Remove ─────────────┘
//	                       Leave, Remove
//
// The id of a row never changes. txn, its transaction id, is made of that and of generation, so that
// sending twice makes one event; generation counts its events that were redacted, because for the old
// transaction id the homeserver would return the old event. revision counts its final texts: what is
// noted of an older one does not count. event_id is the event that carries the message; the first that
// becomes known stays. message names the message that a row is a part of, and part says as what.
type Outbox struct {
	db  *sql.DB
	now func() time.Time
}

// OutboxRow is a message of the bot.
type OutboxRow struct {
	ID, Room, Kind, Text, ReplyTo, State, EventID string
	Mention, Thread, File                         string
	Poll                                          string // see Poll
	Drafted, Closed                               bool
	Revision, Attempts, Generation                int
	NextAt                                        time.Time
	Txn                                           string // the transaction id of the event that carries it
}

// Final is the final text of a message, as its rows will have it.
type Final struct {
	Room       string
	Message    chat.Outgoing
	Text       string // what is read
	File, Poll string // JSON; empty = it is none
	Whole      string // JSON: the file with all of Message.Text; empty = Text is all
}

// Notice is what a room is told by the way, once for each id.
type Notice struct{ ID, Room, Text, ReplyTo, Thread string }

// kindOf is the kind of a row.
func kindOf(m chat.Outgoing) string {
	if m.Notice {
		return "notice"
	}
	return "text"
}

// wholeID names the file with all of a message after what it says: an answer that is given anew
// gets another file, and the old one is redacted.
func wholeID(m chat.Outgoing) string {
	sum := sha256.Sum256([]byte(m.Text))
	return m.ID + "+whole-" + hex.EncodeToString(sum[:6])
}

// Say makes the rows of a final message durable, in one transaction with what with stores: its
// own, which reads f.Text, and that of the file with all of it. A row that was sent before with
// the same text stays as it is, and so does a file that is known already, and its caption. A poll
// only ever closes.
func (o *Outbox) Say(ctx context.Context, f Final, with ...func(context.Context, *sql.Tx) error) error {
	m := f.Message
	err := store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		for _, also := range with {
			if err := also(ctx, tx); err != nil {
				return err
			}
		}
		if !m.Notice {
			if err := o.replaceStaleNotice(ctx, tx, m.ID, false); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO outbox (id, message, part, room, kind, text, reply_to, mention, file, poll, thread, state, revision, created_at)
			VALUES (?1, ?2, iif(?2 = '', '', 'file'), ?, ?, ?, ?, ?, ?, ?, `+threadOf+`, 'pending', 1, ?)
			ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, text = excluded.text, closed = outbox.poll <> '', state = 'pending',
				revision = revision + 1, attempts = 0, next_at = 0, error = ''
			WHERE file = '' AND (outbox.poll = '' OR excluded.poll = '')
				AND (state NOT IN ('sent', 'pending') OR text <> excluded.text OR kind <> excluded.kind
					OR outbox.poll <> '' AND closed = 0)`,
			m.ID, m.AnswerID, f.Room, kindOf(m), f.Text, m.ReplyTo, strings.Join(m.Mention, " "), f.File, f.Poll,
			m.Thread, m.ReplyTo, o.now().UnixMilli())
		if err != nil {
			return err
		}
		kept := ""
		if f.Whole != "" {
			kept = wholeID(m)
			if err := o.putWhole(ctx, tx, f); err != nil {
				return err
			}
		}
		// What a tool sent stands; a file with all of what the message read before goes.
		return removeRows(ctx, tx, partOf+` AND part <> 'file' AND id <> ?2`, m.ID, kept)
	})
	return store.Wrap(err, "delivery: store reply")
}

// putWhole makes the file with all of an answer a row, once.
func (o *Outbox) putWhole(ctx context.Context, tx *sql.Tx, f Final) error {
	m := f.Message
	_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, message, part, room, kind, text, file, thread, state, revision, created_at)
		VALUES (?, ?, 'whole', ?, ?, ?, ?, `+threadOf+`, 'pending', 1, ?)
		ON CONFLICT (id) DO UPDATE SET text = excluded.text, file = excluded.file, state = 'pending', revision = revision + 1,
			attempts = 0, next_at = 0, error = ''
		WHERE state = 'dead' AND error = 'taken back'`,
		wholeID(m), m.ID, f.Room, kindOf(m), m.Text, f.Whole, m.Thread, m.ReplyTo, o.now().UnixMilli())
	return err
}

// Notify stores a notice unless its id was used before. db may be a transaction.
func (o *Outbox) Notify(ctx context.Context, db store.DBTX, n Notice) error {
	_, err := db.ExecContext(ctx, `INSERT OR IGNORE INTO outbox (id, room, kind, text, reply_to, thread, state, revision, created_at)
		VALUES (?, ?, 'notice', ?, ?, `+threadOf+`, 'pending', 1, ?)`,
		n.ID, n.Room, n.Text, n.ReplyTo, n.Thread, n.ReplyTo, o.now().UnixMilli())
	return store.Wrap(err, "delivery: store notice")
}

// AnsweredBy returns the message that the message id answers; empty when there is no such message.
func (o *Outbox) AnsweredBy(ctx context.Context, id string) (string, error) {
	event, err := store.Value[string](ctx, o.db, `SELECT reply_to FROM outbox WHERE id = ?`, id)
	return event, store.Wrap(err, "delivery: look up a notice")
}

const outColumns = `id, room, kind, text, reply_to, mention, thread, file, poll, closed, state, event_id,
	drafted, revision, attempts, next_at, generation, txn`

func scanOut(s store.Row) (r OutboxRow, err error) {
	var next int64
	err = s.Scan(&r.ID, &r.Room, &r.Kind, &r.Text, &r.ReplyTo, &r.Mention, &r.Thread, &r.File, &r.Poll, &r.Closed, &r.State, &r.EventID,
		&r.Drafted, &r.Revision, &r.Attempts, &next, &r.Generation, &r.Txn)
	r.NextAt = time.UnixMilli(next)
	return r, err
}

// Draft makes sure that a row for a draft exists before its first event is sent, and returns it.
// A row that is final already is returned as it is.
func (o *Outbox) Draft(ctx context.Context, room string, m chat.Outgoing) (OutboxRow, error) {
	err := store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		if !m.Notice {
			if err := o.replaceStaleNotice(ctx, tx, m.ID, true); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, reply_to, thread, state, drafted, created_at)
			VALUES (?, ?, ?, ?, `+threadOf+`, 'draft', 1, ?)
			ON CONFLICT (id) DO UPDATE SET kind = excluded.kind WHERE state = 'draft' AND kind <> excluded.kind`,
			m.ID, room, kindOf(m), m.ReplyTo, m.Thread, m.ReplyTo, o.now().UnixMilli())
		return err
	})
	if err != nil {
		return OutboxRow{}, store.Wrap(err, "delivery: store draft")
	}
	r, err := scanOut(o.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = ?`, m.ID))
	return r, store.Wrap(err, "delivery: read draft")
}

// DraftShown notes what a draft reads like now.
func (o *Outbox) DraftShown(ctx context.Context, id, text string) error {
	return o.update(ctx, `UPDATE outbox SET text = ? WHERE id = ? AND state = 'draft'`, text, id)
}

// EndDrafts makes what the drafts of an earlier run show their final text, which end returns, or
// forgets those that may never have been shown. It leaves a draft for which end returns "", and
// one whose question still waits: that is answered again, under the same id.
func (o *Outbox) EndDrafts(ctx context.Context, end func(OutboxRow) string) error {
	rows, err := store.List(ctx, o.db, scanOut, `SELECT `+outColumns+` FROM outbox WHERE state = 'draft'
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.state = 'new'
			AND (inbox.id = outbox.reply_to OR inbox.change = 'taken back' AND inbox.target = outbox.reply_to)) ORDER BY seq`)
	if err != nil {
		return store.Wrap(err, "delivery: read drafts")
	}
	for _, r := range rows {
		if text := end(r); text != "" {
			if err := o.endDraft(ctx, r, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *Outbox) endDraft(ctx context.Context, r OutboxRow, text string) error {
	const dead = `UPDATE outbox SET state = 'dead', error = ? WHERE id = ? AND state = 'draft'`
	if r.EventID == "" {
		return o.update(ctx, dead, "interrupted before it was shown", r.ID)
	}
	if r.Kind == "notice" { // it only said that an answer takes long
		return store.InTx(ctx, o.db, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room, reason)
				VALUES (?, ?, 'why.sent_twice')`, r.EventID, r.Room)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, dead, "nobody waits for it", r.ID)
			return err
		})
	}
	return o.update(ctx, `UPDATE outbox SET state = 'pending', text = ?, revision = 1 WHERE id = ? AND state = 'draft'`, text, r.ID)
}

// staleNotice is how old a notice may be that an answer takes the place of. Who waits for
// longer looks elsewhere, and clients tell nobody of an edit: then the answer is a
// message of its own, and the notice is redacted.
const staleNotice = time.Minute

// replaceStaleNotice has the message id carried by another event if all it has shown is a notice
// that stands for long. drafted tells whether the new event will carry a draft.
func (o *Outbox) replaceStaleNotice(ctx context.Context, tx *sql.Tx, id string, drafted bool) error {
	const old = `id = ?1 AND state = 'draft' AND kind = 'notice' AND created_at <= ?2`
	before := o.now().Add(-staleNotice).UnixMilli()
	if err := redactRoom(ctx, tx, "why.not_needed", old, id, before); err != nil {
		return err
	}
	return nextEvent(ctx, tx, `text = '', drafted = ?3`, old, id, before, drafted)
}

// NextPerRoom returns the oldest message of each room that is still to be sent.
func (o *Outbox) NextPerRoom(ctx context.Context) ([]OutboxRow, error) {
	rows, err := store.List(ctx, o.db, scanOut, `SELECT `+outColumns+` FROM outbox
		WHERE seq IN (SELECT min(seq) FROM outbox WHERE state = 'pending' GROUP BY room) ORDER BY seq`)
	return rows, store.Wrap(err, "delivery: read outbox")
}

// Sent marks a row as sent, unless it got a newer text meanwhile.
func (o *Outbox) Sent(ctx context.Context, r OutboxRow) error {
	return o.update(ctx, `UPDATE outbox SET state = 'sent', error = '' WHERE id = ? AND revision = ? AND generation = ?`,
		r.ID, r.Revision, r.Generation)
}

// Postpone notes a failure and when to try again. The time is rounded up to the millisecond: a
// homeserver that asks for two seconds gets two.
func (o *Outbox) Postpone(ctx context.Context, r OutboxRow, at time.Time, why error) error {
	return o.update(ctx, `UPDATE outbox SET attempts = attempts + 1, next_at = ?, error = ?
		WHERE id = ? AND revision = ? AND generation = ?`,
		at.Add(time.Millisecond-1).UnixMilli(), why.Error(), r.ID, r.Revision, r.Generation)
}

// MarkDead gives a message up.
func (o *Outbox) MarkDead(ctx context.Context, r OutboxRow, why error) error {
	return o.update(ctx, `UPDATE outbox SET state = 'dead', attempts = attempts + 1, error = ?
		WHERE id = ? AND revision = ? AND generation = ?`,
		why.Error(), r.ID, r.Revision, r.Generation)
}

// Uploaded notes where the file of a row is.
func (o *Outbox) Uploaded(ctx context.Context, id, file string) error {
	return o.update(ctx, `UPDATE outbox SET file = ? WHERE id = ?`, file, id)
}

func (o *Outbox) update(ctx context.Context, query string, args ...any) error {
	_, err := o.db.ExecContext(ctx, query, args...)
	return store.Wrap(err, "delivery: update outbox")
}

func (o *Outbox) leave(ctx context.Context, tx *sql.Tx, room string) error {
	_, err := tx.ExecContext(ctx, `UPDATE outbox SET state = 'dead', error = 'no longer in this room'
		WHERE room = ? AND state IN ('draft', 'pending')`, room)
	return err
}

// Said quotes the message of the bot that an event of a room carries, without its sender, and
// tells what it replies to and whether it is the newest answer in the room. The quote has no ID
// when there is no such message.
func (o *Outbox) Said(ctx context.Context, room, event string) (q chat.Quote, replyTo string, newest bool, err error) {
	var name, last string
	var at int64
	const of = `iif(part = 'whole', message, id)`
	err = o.db.QueryRowContext(ctx, `SELECT `+of+`, text, reply_to, created_at,
		coalesce((SELECT `+of+` FROM outbox AS o WHERE o.room = outbox.room AND o.kind = 'text' AND o.event_id <> ''
			ORDER BY o.seq DESC LIMIT 1), '')
		FROM outbox WHERE room = ? AND event_id = ?`, room, event).Scan(&name, &q.Text, &replyTo, &at, &last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return chat.Quote{}, "", false, nil
	case err != nil:
		return chat.Quote{}, "", false, store.Wrap(err, "delivery: look into the outbox")
	}
	q.ID, q.OutgoingID, q.At = event, name, time.UnixMilli(at)
	return q, replyTo, name == last, nil
}
