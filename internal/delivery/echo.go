package delivery

import (
	"cmp"
	"context"
	"database/sql"

	"reverie/internal/store"
)

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
		if err != nil {
			return err
		}
		carrier = cmp.Or(known, event)
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
	return store.Value[bool](ctx, o.db, `SELECT EXISTS (SELECT 1 FROM outbox WHERE event_id = ?1)
		OR EXISTS (SELECT 1 FROM pending_redaction WHERE event_id = ?1)`, event)
}
