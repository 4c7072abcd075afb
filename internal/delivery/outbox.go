package delivery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Outbox stores the messages of the bot. The states of a row:
//
//	EnsureDraft ────► draft ── StoreFinal, EndDrafts ┐
//	                    │                            ▼
//	StoreFinal, Notify ─┼──────────────────────► pending ── MarkDelivered, MarkSent, echo ──► sent
//	                    │                        │  ▲  ▲                                       │
//	                    │              MarkDead, │  │  └─────────────── StoreFinal, new text ──┤
//	                    │              ClearRoom ▼  │ StoreFinal                               │
//	                    └─ EndDrafts, ────────► dead ◄─────────────────── Remove ──────────────┘
//	                       ClearRoom, Remove
//
// The id of a row never changes. txn, its transaction id, is derived from id and generation, so that
// sending twice makes one event. generation counts its redacted events, because the homeserver would
// return the old event for the old transaction id. revision counts its final texts; results for an
// older one are ignored. event_id is the event that carries the message: the first one known stays.
// message names the message that a row is a part of, and part the kind of part.
type Outbox struct {
	db  *store.DB
	now func() time.Time
}

// OutboxRow is a message of the bot, or a part of one.
type OutboxRow struct {
	ID, Room, Kind, Text, ReplyTo, State, EventID string
	Mention, Thread, File                         string
	Poll                                          string // JSON of a Poll
	Drafted, Closed                               bool
	Behind                                        bool // of a draft: a final message of the room is not sent yet
	Revision, Attempts, Generation                int
	NextAt                                        time.Time
	Txn                                           string // the transaction id of the event that carries it
}

// Final is the final text of a message, ready to be stored.
type Final struct {
	Room       string
	Message    chat.Outgoing
	Text       string // the visible text
	File, Poll string // JSON; may be empty
	FullText   string // JSON: the file with all of Message.Text; empty = Text is complete
}

// Notice is an informational message to a room. Each id is sent once.
type Notice struct{ ID, Room, Text, ReplyTo, Thread string }

// kindOf returns the kind column for m.
func kindOf(m chat.Outgoing) string {
	if m.Notice {
		return "notice"
	}
	return "text"
}

// fullTextID derives the row id of the file with m's full text from that text. A new text gets
// another file, and the old one is redacted.
func fullTextID(m chat.Outgoing) string {
	sum := sha256.Sum256([]byte(m.Text))
	return m.ID + "+whole-" + hex.EncodeToString(sum[:6])
}

// StoreFinal stores the rows of a final message. The functions in with run in the same transaction.
// The rows are the one with f.Text, and that of the file with the full text. Rows sent before with
// the same text, and known files and captions, stay as they are. A poll is closed, or an answer replaces it.
func (o *Outbox) StoreFinal(ctx context.Context, f Final, with ...func(context.Context, *sql.Tx) error) error {
	m := f.Message
	return store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		for _, also := range with {
			if err := also(ctx, tx); err != nil {
				return err
			}
		}
		if m.Closed {
			return closePoll(ctx, tx, m, f.Text)
		}
		kept := ""
		if f.FullText != "" {
			kept = fullTextID(m)
		}
		if err := o.replaceEarlier(ctx, tx, m, f.Poll, kept); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO outbox (id, message, part, room, kind, text, reply_to, mention, file, poll, thread, state, revision, created_at)
			VALUES (?1, ?2, iif(?2 = '', '', 'file'), ?, ?, ?, ?, ?, ?, ?, `+threadExpr+`, 'pending', 1, ?)
			ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, text = excluded.text, closed = state <> 'draft' AND outbox.poll <> '',
				state = 'pending', revision = revision + 1, attempts = 0, next_at = 0, error = ''
			WHERE file = '' AND (outbox.poll = '' OR excluded.poll = '' OR state = 'draft')
				AND (state NOT IN ('sent', 'pending') OR text <> excluded.text OR kind <> excluded.kind
					OR outbox.poll <> '' AND closed = 0)`,
			m.ID, m.AnswerID, f.Room, kindOf(m), f.Text, m.ReplyTo, strings.Join(m.Mention, " "), f.File, f.Poll,
			m.Thread, m.ReplyTo, o.now().UnixMilli())
		if err != nil || f.FullText == "" {
			return err
		}
		return o.storeFullText(ctx, tx, f)
	})
}

// replaceEarlier gives m a new event if the one sent earlier cannot be edited to show it. An older full text is
// removed, unless its id is kept; files that a tool sent stay.
func (o *Outbox) replaceEarlier(ctx context.Context, tx *sql.Tx, m chat.Outgoing, poll, kept string) error {
	earlier, err := store.Value[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM outbox WHERE id = ?1 OR `+partOf+`)`, m.ID)
	if err != nil || !earlier {
		return err
	}
	if !m.Notice {
		if err := o.replaceStaleNotice(ctx, tx, m.ID, false); err != nil {
			return err
		}
	}
	if err := replacePoll(ctx, tx, m.ID, poll); err != nil {
		return err
	}
	return removeRows(ctx, tx, partOf+` AND part <> 'file' AND id <> ?2`, m.ID, kept)
}

// storeFullText stores the row of the file with the full text, once.
func (o *Outbox) storeFullText(ctx context.Context, tx *sql.Tx, f Final) error {
	m := f.Message
	return store.Exec(ctx, tx, `INSERT INTO outbox (id, message, part, room, kind, text, file, thread, state, revision, created_at)
		VALUES (?, ?, 'whole', ?, ?, ?, ?, `+threadExpr+`, 'pending', 1, ?)
		ON CONFLICT (id) DO UPDATE SET text = excluded.text, file = excluded.file, state = 'pending', revision = revision + 1,
			attempts = 0, next_at = 0, error = ''
		WHERE state = 'dead' AND error = 'taken back'`,
		fullTextID(m), m.ID, f.Room, kindOf(m), m.Text, f.FullText, m.Thread, m.ReplyTo, o.now().UnixMilli())
}

// Notify stores a notice unless its id was used before. db may be a transaction.
func (o *Outbox) Notify(ctx context.Context, db store.DBTX, n Notice) error {
	return store.Exec(ctx, db, `INSERT OR IGNORE INTO outbox (id, room, kind, text, reply_to, thread, state, revision, created_at)
		VALUES (?, ?, 'notice', ?, ?, `+threadExpr+`, 'pending', 1, ?)`,
		n.ID, n.Room, n.Text, n.ReplyTo, n.Thread, n.ReplyTo, o.now().UnixMilli())
}

// ReplyTarget returns the event that the message id replies to; empty if there is no such message.
func (o *Outbox) ReplyTarget(ctx context.Context, id string) (string, error) {
	return store.Value[string](ctx, o.db, `SELECT reply_to FROM outbox WHERE id = ?`, id)
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

// EnsureDraft creates the row of a draft and returns it. The row exists before the draft's first
// event is sent. A row that is final already is returned unchanged.
func (o *Outbox) EnsureDraft(ctx context.Context, room string, m chat.Outgoing) (OutboxRow, error) {
	err := store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		if !m.Notice {
			if err := o.replaceStaleNotice(ctx, tx, m.ID, true); err != nil {
				return err
			}
		}
		return store.Exec(ctx, tx, `INSERT INTO outbox (id, room, kind, reply_to, thread, state, drafted, created_at)
			VALUES (?, ?, ?, ?, `+threadExpr+`, 'draft', 1, ?)
			ON CONFLICT (id) DO UPDATE SET kind = excluded.kind WHERE state = 'draft' AND kind <> excluded.kind`,
			m.ID, room, kindOf(m), m.ReplyTo, m.Thread, m.ReplyTo, o.now().UnixMilli())
	})
	if err != nil {
		return OutboxRow{}, store.Wrap(err, "delivery: store draft")
	}
	r, err := scanOut(o.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = ?`, m.ID))
	if err == nil {
		r.Behind, err = store.Value[bool](ctx, o.db, `SELECT EXISTS (SELECT 1 FROM outbox WHERE room = ? AND state = 'pending')`, room)
	}
	return r, store.Wrap(err, "delivery: read draft")
}

// UpdateDraft records the text that a draft shows now.
func (o *Outbox) UpdateDraft(ctx context.Context, id, text string) error {
	return store.Exec(ctx, o.db, `UPDATE outbox SET text = ? WHERE id = ? AND state = 'draft'`, text, id)
}

// EndDrafts ends the drafts of an earlier process: shown ones get the final text that end returns,
// others are given up. It keeps drafts for which end returns "", and those whose question is still
// in the inbox: that is answered again, under the same id.
func (o *Outbox) EndDrafts(ctx context.Context, end func(OutboxRow) string) error {
	rows, err := store.List(ctx, o.db, scanOut, `SELECT `+outColumns+` FROM outbox WHERE state = 'draft'
		AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.state = 'new'
			AND (inbox.id = outbox.reply_to OR inbox.change = 'redacted' AND inbox.target = outbox.reply_to)) ORDER BY seq`)
	if err != nil {
		return err
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
		return store.Exec(ctx, o.db, dead, "interrupted before it was shown", r.ID)
	}
	if r.Kind == "notice" { // only a progress notice
		return store.InTx(ctx, o.db, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO pending_redaction (event_id, room, reason)
				VALUES (?, ?, 'why.sent_twice')`, r.EventID, r.Room)
			if err != nil {
				return err
			}
			return store.Exec(ctx, tx, dead, "no longer needed", r.ID)
		})
	}
	return store.Exec(ctx, o.db, `UPDATE outbox SET state = 'pending', text = ?, revision = 1 WHERE id = ? AND state = 'draft'`, text, r.ID)
}

// maxNoticeAge is the age up to which an answer edits the progress notice in place. Clients do not
// notify for edits, so after that the answer is a new message and the notice is redacted.
const maxNoticeAge = time.Minute

// replaceStaleNotice redacts an old progress notice, so that the message id gets a new event.
// drafted tells whether that event will carry a draft.
func (o *Outbox) replaceStaleNotice(ctx context.Context, tx *sql.Tx, id string, drafted bool) error {
	const old = `id = ?1 AND state = 'draft' AND kind = 'notice' AND created_at <= ?2`
	before := o.now().Add(-maxNoticeAge).UnixMilli()
	if err := queueRedactions(ctx, tx, "why.not_needed", old, id, before); err != nil {
		return err
	}
	return nextGeneration(ctx, tx, `text = '', drafted = ?3`, old, id, before, drafted)
}

// Due returns the oldest unsent message of each room if its time has come, at most limit of them, and the time of
// the next postponed one; zero = nothing is postponed. A time more than horizon away counts as come: then the clock
// was set back.
func (o *Outbox) Due(ctx context.Context, now time.Time, horizon time.Duration, limit int) (due []OutboxRow, next time.Time, err error) {
	due, err = store.List(ctx, o.db, scanOut, `SELECT `+outColumns+` FROM outbox WHERE state = 'pending' AND next_at NOT BETWEEN ? AND ?
		AND NOT EXISTS (SELECT 1 FROM outbox AS older WHERE older.state = 'pending' AND older.room = outbox.room AND older.seq < outbox.seq)
		ORDER BY seq LIMIT ?`, now.UnixMilli()+1, now.Add(horizon).UnixMilli(), limit)
	if err != nil {
		return nil, next, err
	}
	ms, err := store.Value[int64](ctx, o.db, `SELECT coalesce(min(next_at), 0) FROM outbox
		WHERE state = 'pending' AND next_at > 0 AND next_at > ?`, now.UnixMilli())
	if ms > 0 {
		next = time.UnixMilli(ms)
	}
	return due, next, err
}

// MarkSent marks a row as sent, unless it has a newer text.
func (o *Outbox) MarkSent(ctx context.Context, r OutboxRow) error {
	return store.Exec(ctx, o.db, `UPDATE outbox SET state = 'sent', error = '' WHERE id = ? AND revision = ? AND generation = ?`,
		r.ID, r.Revision, r.Generation)
}

// Postpone records a failure and the time of the next attempt. The time is rounded up to the
// millisecond, so as not to be earlier than the homeserver asked for.
func (o *Outbox) Postpone(ctx context.Context, r OutboxRow, at time.Time, why error) error {
	return store.Exec(ctx, o.db, `UPDATE outbox SET attempts = attempts + 1, next_at = ?, error = ?
		WHERE id = ? AND revision = ? AND generation = ?`,
		at.Add(time.Millisecond-1).UnixMilli(), why.Error(), r.ID, r.Revision, r.Generation)
}

// MarkDead gives up a message.
func (o *Outbox) MarkDead(ctx context.Context, r OutboxRow, why error) error {
	return store.Exec(ctx, o.db, `UPDATE outbox SET state = 'dead', attempts = attempts + 1, error = ?
		WHERE id = ? AND revision = ? AND generation = ?`,
		why.Error(), r.ID, r.Revision, r.Generation)
}

// SetFile records where the file of a row was uploaded.
func (o *Outbox) SetFile(ctx context.Context, id, file string) error {
	return store.Exec(ctx, o.db, `UPDATE outbox SET file = ? WHERE id = ?`, file, id)
}

// QuoteOf quotes the bot's message that an event carries, without its sender. It also returns which
// event that replies to, and whether it is the newest answer in the room. Without such a message
// the quote has no ID.
func (o *Outbox) QuoteOf(ctx context.Context, room, event string) (q chat.Quote, replyTo string, newest bool, err error) {
	var name, last string
	var at int64
	const of = `iif(part = 'whole', message, id)`
	err = o.db.QueryRowContext(ctx, `SELECT `+of+`, text, reply_to, created_at,
		coalesce((SELECT `+of+` FROM outbox AS o WHERE o.room = outbox.room AND o.kind = 'text' AND o.event_id <> ''
			ORDER BY o.seq DESC LIMIT 1), '')
		FROM outbox WHERE room = ? AND event_id = ? AND event_id <> ''`, room, event).Scan(&name, &q.Text, &replyTo, &at, &last)
	if found, err := store.Found(err); !found {
		return chat.Quote{}, "", false, store.Wrap(err, "delivery: look into the outbox")
	}
	q.ID, q.OutgoingID, q.At = event, name, time.UnixMilli(at)
	return q, replyTo, name == last, nil
}

// Poll is a question with options, stored in the outbox as JSON.
type Poll struct {
	Question string        `json:"question"`
	Options  []chat.Option `json:"options"`
}

// AnswerID is the id of an option in events, unique per transaction id of a poll. Relations are not
// encrypted, so a homeserver could redirect an encrypted vote to another poll.
func AnswerID(txn, option string) string {
	sum := sha256.Sum256([]byte(txn))
	return option + "-" + hex.EncodeToString(sum[:8])
}

// closePoll closes the poll m.ID with the outcome text. Without such an open poll it does nothing.
func closePoll(ctx context.Context, tx *sql.Tx, m chat.Outgoing, text string) error {
	return store.Exec(ctx, tx, `UPDATE outbox SET text = ?, closed = 1, state = 'pending', revision = revision + 1, attempts = 0,
		next_at = 0, error = '' WHERE id = ? AND poll <> '' AND closed = 0`, text, m.ID)
}

// replacePoll gives the answer id a new event if a poll takes its place, or the place of its poll. An event
// cannot change its type. Questions that are notices stay as they were asked.
func replacePoll(ctx context.Context, tx *sql.Tx, id, poll string) error {
	const other = `id = ?1 AND poll <> ?2 AND (poll = '' OR kind = 'text')`
	if err := queueRedactions(ctx, tx, "why.not_needed", other, id, poll); err != nil {
		return err
	}
	return nextGeneration(ctx, tx, `state = 'draft', text = '', drafted = 0, revision = 0, poll = ?2, closed = 0`, other, id, poll)
}

// Echo is an event of the bot received in a sync: proof that the homeserver accepted it.
type Echo struct{ Txn, Event string }

// recordEcho stores the event id of a message whose send response may have been lost. The message
// is sent, unless the event may be a draft.
func (o *Outbox) recordEcho(ctx context.Context, tx *sql.Tx, e Echo) error {
	if err := redactDuplicate(ctx, tx, e); err != nil {
		return err
	}
	id, err := store.Value[string](ctx, tx, `UPDATE outbox SET event_id = ?,
		state = iif(state = 'pending' AND drafted = 0 AND revision = 1, 'sent', state)
		WHERE txn = ? AND event_id = '' RETURNING id`, e.Event, e.Txn)
	if err != nil || id == "" {
		return err
	}
	return o.recordThreadActivity(ctx, tx, id, e.Event)
}

// MarkDelivered records the event that carries r, and returns the carrier: a sync may have recorded
// an earlier event. With whole, the event shows all of the row, so the row is sent.
func (o *Outbox) MarkDelivered(ctx context.Context, r OutboxRow, event string, whole bool) (carrier string, err error) {
	err = store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		if err := redactDuplicate(ctx, tx, Echo{Txn: r.Txn, Event: event}); err != nil {
			return err
		}
		known, err := store.Value[string](ctx, tx, `UPDATE outbox SET event_id = CASE event_id WHEN '' THEN ?1 ELSE event_id END,
			state = iif(?4 AND revision = ?5, 'sent', state), error = iif(?4 AND revision = ?5, '', error)
			WHERE id = ?2 AND generation = ?3 RETURNING event_id`, event, r.ID, r.Generation, whole, r.Revision)
		carrier = cmp.Or(known, event)
		if err != nil || r.Thread == "" {
			return err
		}
		return o.recordThreadActivity(ctx, tx, r.ID, carrier)
	})
	return carrier, store.Wrap(err, "delivery: update outbox")
}

// Unconfirmed returns the messages for which it is unknown whether they were sent, oldest first; of
// all rooms if room is empty.
func (o *Outbox) Unconfirmed(ctx context.Context, room string) ([]OutboxRow, error) {
	return store.List(ctx, o.db, scanOut, `SELECT `+outColumns+` FROM outbox
		WHERE state IN ('draft', 'pending') AND event_id = '' AND ?1 IN ('', room) ORDER BY seq`, room)
}

// IsOwnEvent reports whether the bot sent the event.
func (o *Outbox) IsOwnEvent(ctx context.Context, event string) (bool, error) {
	return store.Value[bool](ctx, o.db, `SELECT EXISTS (SELECT 1 FROM outbox WHERE event_id = ?1 AND event_id <> '')
		OR EXISTS (SELECT 1 FROM pending_redaction WHERE event_id = ?1)`, event)
}
