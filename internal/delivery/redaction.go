package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"reverie/internal/store"
)

// Redaction is an event of the bot that is still to be redacted in its room; the table is called
// takeback. The states of a row:
//
//	Remove, a second echo … ──► due ── RedactionDone ──► (deleted)
//	                            │  ▲
//	                            └──┘ PostponeRedaction
//
// A homeserver that is stopped while it takes a message may answer with an error, keep the message
// all the same, and show it only when it was long sent again. No client can know that beforehand,
// so the event that comes late is redacted.
type Redaction struct {
	Event, Room, Reason string
	Attempts            int
	NextAt              time.Time
}

// redactSecond notes that the event of e is to be redacted when the message has another event
// already: the first that was learned of carries it, for good. So is one that comes from
// before the message was taken out of the room.
func redactDuplicate(ctx context.Context, tx *sql.Tx, e Echo) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room, reason)
		SELECT ?1, room, 'why.sent_twice' FROM outbox WHERE txn = ?2 AND event_id NOT IN ('', ?1)
		UNION ALL SELECT ?1, room, 'why.sent_twice' FROM redacted_txn WHERE txn = ?2`, e.Event, e.Txn)
	return err
}

// redactRoom notes that the events of rows of the outbox are to be redacted.
func queueRedactions(ctx context.Context, tx *sql.Tx, why, where string, args ...any) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room, reason)
		SELECT event_id, room, '`+why+`' FROM outbox WHERE event_id <> '' AND `+where, args...)
	return err
}

// Redactions returns the events that are still to be redacted.
func (o *Outbox) Redactions(ctx context.Context) ([]Redaction, error) {
	due, err := store.List(ctx, o.db, func(row store.Row) (r Redaction, err error) {
		var next int64
		err = row.Scan(&r.Event, &r.Room, &r.Attempts, &next, &r.Reason)
		r.NextAt = time.UnixMilli(next)
		return r, err
	}, `SELECT event_id, room, attempts, next_at, reason FROM takeback ORDER BY rowid`)
	return due, store.Wrap(err, "delivery: read what is to be redacted")
}

// PostponeRedaction notes a failure and when to try again.
func (o *Outbox) PostponeRedaction(ctx context.Context, event string, at time.Time) error {
	return o.update(ctx, `UPDATE takeback SET attempts = attempts + 1, next_at = ? WHERE event_id = ?`, at.UnixMilli(), event)
}

// RedactionDone ends the redaction of an event, because it is redacted or cannot be.
func (o *Outbox) RedactionDone(ctx context.Context, event string) error {
	return o.update(ctx, `DELETE FROM takeback WHERE event_id = ?`, event)
}

// toForget notes that a message was redacted by its sender and is still to be forgotten. Its row
// in the table redaction is deleted by ForgetRedacted.
func queueForget(ctx context.Context, tx *sql.Tx, event string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO redaction (event) VALUES (?) ON CONFLICT DO NOTHING`, event)
	return err
}

// ForgetRedacted calls forget for each redacted message that is still to be forgotten, until one fails.
func (in *Inbox) ForgetRedacted(ctx context.Context, forget func(ctx context.Context, event string) error) error {
	for {
		event, err := store.Value[string](ctx, in.db, `SELECT coalesce(min(event), '') FROM redaction`)
		if err != nil || event == "" {
			return store.Wrap(err, "delivery: read redactions")
		}
		if err := forget(ctx, event); err != nil {
			return err
		}
		if _, err := in.db.ExecContext(ctx, `DELETE FROM redaction WHERE event = ?`, event); err != nil {
			return store.Wrap(err, "delivery: note a redaction")
		}
	}
}

// Forget takes texts out of the copies of what was sent and heard, in tx. What waits to be
// sent stays as it is.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		escaped, _ := json.Marshal(t) //nolint:errchkjson // a string
		for _, in := range []struct{ query, text string }{
			{`UPDATE outbox SET text = replace(text, ?1, '[forgotten]') WHERE state IN ('sent', 'dead') AND instr(text, ?1) > 0`, t},
			{`UPDATE outbox SET poll = replace(poll, ?1, '[forgotten]') WHERE state IN ('sent', 'dead') AND instr(poll, ?1) > 0`,
				string(escaped[1 : len(escaped)-1])},
			{`UPDATE heard SET text = replace(text, ?1, '[forgotten]') WHERE instr(text, ?1) > 0`, t},
		} {
			if _, err := tx.ExecContext(ctx, in.query, in.text); err != nil {
				return store.Wrap(err, "delivery: forget in what was sent and heard")
			}
		}
	}
	return nil
}
