package delivery

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// partsOf is the condition for rows that belong to the message ?1: files with all of it or that a
// tool sent, and further messages of one that an earlier version sent in parts. A poll is no
// part, whatever its name. The bounds are for the index, which knows no substr: what has been said
// so far is not read.
const partsOf = `(id > ?1 || '+' AND id < ?1 || '.' AND substr(id, 1, length(?1) + 1) IN (?1 || '-', ?1 || '+') AND poll = '')`

// messageOf names the message of the bot that the event carries, or carries a part of.
func (o *Outbox) messageOf(ctx context.Context, tx *sql.Tx, event string) (message string, ours bool, err error) {
	var isPoll bool
	err = tx.QueryRowContext(ctx, `SELECT id, poll <> '' FROM outbox WHERE event_id = ? AND event_id <> ''`, event).Scan(&message, &isPoll)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	for whole := message; err == nil && !isPoll; { // a part is named after what it is of
		at := max(strings.LastIndex(whole, "-"), strings.LastIndex(whole, "+"))
		if at <= 0 {
			break
		}
		whole = whole[:at]
		var n int
		if err = tx.QueryRowContext(ctx, `SELECT count(*) FROM outbox WHERE id = ?`, whole).Scan(&n); n > 0 {
			message = whole
		}
	}
	return message, err == nil, err
}

// redactedRow takes rows out of the outbox whose events are not to be seen any more. Another
// event may come of them later; it needs another transaction id.
const redactedRow = `UPDATE outbox SET state = 'dead', event_id = '', text = '', error = 'taken back', poll = '', closed = 0, drafted = 0,
	revision = 0, generation = generation + 1`

// removeRows takes rows out of the outbox, and their events out of the room.
func removeRows(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	if err := redactRoom(ctx, tx, "why.taken_back", where, args...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, redactedRow+` WHERE error <> 'taken back' AND `+where, args...)
	return err
}

// Remove takes the message id out of room, with its files, also what is being sent right now. It
// may be repeated. One that was never said is no error, and no draft of it is shown any more.
func (o *Outbox) Remove(ctx context.Context, room, id string) error {
	err := store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		if err := removeRows(ctx, tx, `(id = ?1 OR `+partsOf+`)`, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, state, error, created_at) VALUES (?, ?, 'dead', 'taken back', ?)
			ON CONFLICT DO NOTHING`, id, room, o.now().UnixMilli())
		return err
	})
	return doing("redact a message of the bot", err)
}

// redacted notes that somebody redacted an event of the bot, and names the answer that history is
// to forget for it; ours is false when there is none.
func (o *Outbox) redacted(ctx context.Context, tx *sql.Tx, event string) (answer string, ours bool, err error) {
	answer, ours, err = o.messageOf(ctx, tx, event)
	if err != nil || !ours {
		return "", false, err
	}
	// Of a file that a tool sent: what was said of it stands.
	file, err := store.Value[bool](ctx, tx, `SELECT instr(id, ?) > 0 FROM outbox WHERE event_id = ?`, chat.SentMark, event)
	if err != nil {
		return "", false, err
	}
	if _, err := tx.ExecContext(ctx, redactedRow+` WHERE event_id = ?`, event); err != nil || file {
		return "", false, err
	}
	// An answer of several messages is one: what is left of it says what history forgets.
	err = removeRows(ctx, tx, `(id = ?1 OR `+partsOf+`) AND substr(id, length(?1) + 1, ?2) <> ?3`,
		answer, len(chat.SentMark), chat.SentMark)
	return answer, true, err
}
