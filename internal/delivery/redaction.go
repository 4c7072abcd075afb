package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"reverie/internal/store"
)

// Redaction is a pending redaction of an event of the bot. Its table has an older name. The states
// of a row:
//
//	Remove, duplicate echo … ─► due ── RedactionDone ──► (deleted)
//	                            │  ▲
//	                            └──┘ PostponeRedaction
//
// A homeserver that is stopped while it stores a message may return an error, keep the message, and
// show it long after it was sent again. A client cannot detect that earlier, so the late event is
// redacted.
type Redaction struct {
	Event, Room, Reason string
	Attempts            int
	NextAt              time.Time
}

// redactDuplicate queues the redaction of e if the message has another event already: the first
// known event carries it. It also redacts events of a message that was removed.
func redactDuplicate(ctx context.Context, tx *sql.Tx, e Echo) error {
	return store.Exec(ctx, tx, `INSERT OR IGNORE INTO pending_redaction (event_id, room, reason)
		SELECT ?1, room, 'why.sent_twice' FROM outbox WHERE txn = ?2 AND event_id NOT IN ('', ?1)
		UNION ALL SELECT ?1, room, 'why.sent_twice' FROM redacted_txn WHERE txn = ?2`, e.Event, e.Txn)
}

// queueRedactions queues the redaction of the events of outbox rows.
func queueRedactions(ctx context.Context, tx *sql.Tx, why, where string, args ...any) error {
	return store.Exec(ctx, tx, `INSERT OR IGNORE INTO pending_redaction (event_id, room, reason)
		SELECT event_id, room, '`+why+`' FROM outbox WHERE event_id <> '' AND `+where, args...)
}

// Redactions returns the pending redactions.
func (o *Outbox) Redactions(ctx context.Context) ([]Redaction, error) {
	return store.List(ctx, o.db, func(row store.Row) (r Redaction, err error) {
		var next int64
		err = row.Scan(&r.Event, &r.Room, &r.Attempts, &next, &r.Reason)
		r.NextAt = time.UnixMilli(next)
		return r, err
	}, `SELECT event_id, room, attempts, next_at, reason FROM pending_redaction ORDER BY rowid`)
}

// PostponeRedaction records a failure and the time of the next attempt.
func (o *Outbox) PostponeRedaction(ctx context.Context, event string, at time.Time) error {
	return store.Exec(ctx, o.db, `UPDATE pending_redaction SET attempts = attempts + 1, next_at = ? WHERE event_id = ?`,
		at.UnixMilli(), event)
}

// RedactionDone ends a redaction, because it succeeded or is impossible.
func (o *Outbox) RedactionDone(ctx context.Context, event string) error {
	return store.Exec(ctx, o.db, `DELETE FROM pending_redaction WHERE event_id = ?`, event)
}

// recordRedaction records in the table redaction that a redacted message has to be forgotten.
// ForgetRedacted deletes the row.
func recordRedaction(ctx context.Context, tx *sql.Tx, event string) error {
	return store.Exec(ctx, tx, `INSERT INTO redacted_message (event) VALUES (?) ON CONFLICT DO NOTHING`, event)
}

// ForgetRedacted calls forget for each redacted message that is not forgotten yet. It stops when
// one call fails.
func (in *Inbox) ForgetRedacted(ctx context.Context, forget func(ctx context.Context, event string) error) error {
	for {
		event, err := store.Value[string](ctx, in.db, `SELECT coalesce(min(event), '') FROM redacted_message`)
		if err != nil || event == "" {
			return err
		}
		if err := forget(ctx, event); err != nil {
			return err
		}
		if err := store.Exec(ctx, in.db, `DELETE FROM redacted_message WHERE event = ?`, event); err != nil {
			return err
		}
	}
}

// Forget removes texts from stored copies of sent messages and group context, in tx. Unsent
// messages stay as they are.
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
			{`UPDATE group_message SET text = replace(text, ?1, '[forgotten]') WHERE instr(text, ?1) > 0`, t},
		} {
			if err := store.Exec(ctx, tx, in.query, in.text); err != nil {
				return err
			}
		}
	}
	return nil
}
