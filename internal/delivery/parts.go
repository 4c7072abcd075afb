package delivery

import (
	"context"
	"database/sql"

	"reverie/internal/store"
)

// partOf selects the rows that belong to the message ?1: its files, and further parts of messages
// sent by earlier versions.
const partOf = `message = ?1 AND message <> ''`

// messageOf returns the message that the event carries whole or in part. part is the kind of part.
func (o *Outbox) messageOf(ctx context.Context, tx *sql.Tx, event string) (message, part string, err error) {
	_, err = store.Found(tx.QueryRowContext(ctx, `SELECT iif(message = '', id, message), part FROM outbox
		WHERE event_id = ? AND event_id <> ''`, event).Scan(&message, &part))
	return message, part, err
}

// nextGeneration lets another event carry the rows selected by where, and applies set to them. The
// rows get new transaction ids; an event of an old id is redacted when a sync shows it.
func nextGeneration(ctx context.Context, tx *sql.Tx, set, where string, args ...any) error {
	for _, query := range []string{`INSERT OR IGNORE INTO redacted_txn (txn, room) SELECT txn, room FROM outbox WHERE ` + where,
		`UPDATE outbox SET event_id = '', generation = generation + 1, ` + set + ` WHERE ` + where} {
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// removedState is the state of a row whose event is redacted. A later event may revive it.
const removedState = `state = 'dead', text = '', error = 'taken back', poll = '', closed = 0, drafted = 0, revision = 0`

// removeRows removes rows from the outbox and redacts their events.
func removeRows(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	if err := queueRedactions(ctx, tx, "why.taken_back", where, args...); err != nil {
		return err
	}
	return nextGeneration(ctx, tx, removedState, `error <> 'taken back' AND `+where, args...)
}

// Remove redacts the message id and its files, also one that is being sent. It may be repeated. An
// unknown message is not an error; drafts of it will not be sent.
func (o *Outbox) Remove(ctx context.Context, room, id string) error {
	return store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		if err := removeRows(ctx, tx, `(id = ?1 OR `+partOf+`)`, id); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `INSERT INTO outbox (id, room, state, error, created_at) VALUES (?, ?, 'dead', 'redacted', ?)
			ON CONFLICT DO NOTHING`, id, room, o.now().UnixMilli())
	})
}

// recordRedaction records that a person redacted an event of the bot. It returns the answer that
// history must forget; empty = none.
func (o *Outbox) recordRedaction(ctx context.Context, tx *sql.Tx, event string) (answer string, err error) {
	answer, part, err := o.messageOf(ctx, tx, event)
	if err != nil || answer == "" {
		return "", err
	}
	err = nextGeneration(ctx, tx, removedState, `event_id = ? AND event_id <> ''`, event)
	if err != nil || part == "file" { // the answer itself stays
		return "", err
	}
	// All parts of an answer are redacted together.
	return answer, removeRows(ctx, tx, `(id = ?1 OR `+partOf+`) AND part <> 'file'`, answer)
}
