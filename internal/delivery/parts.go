package delivery

import (
	"context"
	"database/sql"
	"errors"

	"reverie/internal/store"
)

// partOf is the condition for rows that belong to the message ?1: files with all of it or that a
// tool sent, and further messages of one that an earlier version sent in parts. What has been said
// so far is not read.
const partOf = `message = ?1 AND message <> ''`

// messageOf names the message of the bot that the event carries, or carries a part of, and says as what.
func (o *Outbox) messageOf(ctx context.Context, tx *sql.Tx, event string) (message, part string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT iif(message = '', id, message), part FROM outbox WHERE event_id = ? AND event_id <> ''`, event).
		Scan(&message, &part)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return message, part, err
}

// nextEvent has another event carry the rows for which where holds, with what set says of them. It
// needs another transaction id, and an event of the old one is redacted when a sync shows it.
func nextGeneration(ctx context.Context, tx *sql.Tx, set, where string, args ...any) error {
	for _, query := range []string{`INSERT OR IGNORE INTO redacted_txn (txn, room) SELECT txn, room FROM outbox WHERE ` + where,
		`UPDATE outbox SET event_id = '', generation = generation + 1, ` + set + ` WHERE ` + where} {
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// gone is a row whose event is not to be seen any more. Another event may come of it later.
const removedState = `state = 'dead', text = '', error = 'taken back', poll = '', closed = 0, drafted = 0, revision = 0`

// removeRows takes rows out of the outbox, and their events out of the room.
func removeRows(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	if err := queueRedactions(ctx, tx, "why.taken_back", where, args...); err != nil {
		return err
	}
	return nextGeneration(ctx, tx, removedState, `error <> 'taken back' AND `+where, args...)
}

// Remove takes the message id out of room, with its files, also what is being sent right now. It
// may be repeated. One that was never said is no error, and no draft of it is shown any more.
func (o *Outbox) Remove(ctx context.Context, room, id string) error {
	err := store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		if err := removeRows(ctx, tx, `(id = ?1 OR `+partOf+`)`, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, state, error, created_at) VALUES (?, ?, 'dead', 'taken back', ?)
			ON CONFLICT DO NOTHING`, id, room, o.now().UnixMilli())
		return err
	})
	return store.Wrap(err, "delivery: redact a message of the bot")
}

// redacted notes that somebody redacted an event of the bot, and names the answer that history is
// to forget for it; it is empty when there is none.
func (o *Outbox) recordRedaction(ctx context.Context, tx *sql.Tx, event string) (answer string, err error) {
	answer, part, err := o.messageOf(ctx, tx, event)
	if err != nil || answer == "" {
		return "", err
	}
	if err := nextGeneration(ctx, tx, removedState, `event_id = ?`, event); err != nil || part == "file" { // what was said of that stands
		return "", err
	}
	// An answer of several messages is one: what is left of it says what history forgets.
	return answer, removeRows(ctx, tx, `(id = ?1 OR `+partOf+`) AND part <> 'file'`, answer)
}
