package delivery

import (
	"context"
	"database/sql"
	"slices"
	"time"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// What is kept of a room's talk that is not for the bot, until it is asked something there.
const (
	heardKept  = 20 // lines of a room
	heardFor   = 24 * time.Hour
	givenRunes = 4_000 // with one message
)

// heard holds what was said in rooms with others and was not for the bot. The states of a row:
//
//	store ──► waiting ── attach, redact ──► given (without its text)
//	          (given = 0)                   (given = 1)
//
// A line is deleted when it is old, when its room has too many, when its sender edits its words
// away, and when the bot leaves the room.
type heard struct{ now func() time.Time }

// Line is something that was said in a room with others, and not to the bot.
type Line struct {
	chat.Quote
	Room, Thread string
	Edit         bool // it says what the line ID reads now; an empty text takes it away
}

// store keeps a line, and forgets what is too old or too much.
func (h heard) store(ctx context.Context, tx *sql.Tx, l *Line) error {
	if l.Edit {
		return h.edit(ctx, tx, l)
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`DELETE FROM heard WHERE heard_at < ?`, []any{h.now().Add(-heardFor).UnixMilli()}},
		{`INSERT OR IGNORE INTO heard (event, room, thread, sender, text, at, heard_at) SELECT ?1, ?, ?, ?, ?, ?, ?
			WHERE NOT EXISTS (SELECT 1 FROM redaction WHERE event = ?1)`,
			[]any{l.ID, l.Room, l.Thread, l.Sender, l.Text, l.At.UnixMilli(), h.now().UnixMilli()}},
		{`DELETE FROM heard WHERE room = ?1 AND seq <= (SELECT seq FROM heard WHERE room = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`,
			[]any{l.Room, heardKept}},
	} {
		if _, err := tx.ExecContext(ctx, step.query, step.args...); err != nil {
			return store.Wrap(err, "delivery: keep what was heard")
		}
	}
	return nil
}

// edit gives a line the words that its sender gave it since. One that was attached already stays.
func (heard) edit(ctx context.Context, tx *sql.Tx, l *Line) error {
	query, args := `UPDATE heard SET text = ?3 WHERE event = ?1 AND sender = ?2 AND given = 0`, []any{l.ID, l.Sender, l.Text}
	if l.Text == "" {
		query, args = `DELETE FROM heard WHERE event = ?1 AND sender = ?2 AND given = 0`, args[:2]
	}
	_, err := tx.ExecContext(ctx, query, args...)
	return store.Wrap(err, "delivery: change what was heard")
}

// attach adds to m what was heard where it was said since the last time. Each line is attached
// once: the history has it then.
func (h heard) attach(ctx context.Context, tx *sql.Tx, m *chat.Message) error {
	lines, err := store.List(ctx, tx, func(row store.Row) (chat.Quote, error) {
		l := chat.Quote{Why: chat.QuoteContext}
		var at int64
		err := row.Scan(&l.ID, &l.Sender, &l.Text, &at)
		l.At = time.UnixMilli(at)
		return l, err
	}, `SELECT event, sender, text, at FROM heard
		WHERE room = ? AND thread = ? AND given = 0 AND heard_at >= ? ORDER BY seq DESC`,
		m.Room, m.Thread, h.now().Add(-heardFor).UnixMilli())
	if err != nil {
		return store.Wrap(err, "delivery: read what was heard")
	}
	left := givenRunes
	over := slices.IndexFunc(lines, func(l chat.Quote) bool { left -= utf8.RuneCountInString(l.Text); return left < 0 })
	if over >= 0 {
		lines = lines[:over]
	}
	slices.Reverse(lines)
	m.Quotes = append(m.Quotes, lines...)
	_, err = tx.ExecContext(ctx, `UPDATE heard SET given = 1, text = '' WHERE room = ? AND thread = ?`, m.Room, m.Thread)
	return store.Wrap(err, "delivery: note what was given of what was heard")
}

// redact forgets what was heard as event, also where it waits as a quote.
func (heard) redact(ctx context.Context, tx *sql.Tx, event string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE heard SET given = 1, text = '' WHERE event = ?`, event); err != nil {
		return store.Wrap(err, "delivery: forget what was heard")
	}
	_, err := tx.ExecContext(ctx, `UPDATE inbox SET brought = json_set(brought, '$.quotes',
			json((SELECT json_group_array(json(value)) FROM json_each(brought, '$.quotes') WHERE value ->> '$.id' <> ?1)))
		WHERE state = 'new' AND instr(brought, ?1) > 0`, event)
	return store.Wrap(err, "delivery: forget what was heard")
}

func (heard) leave(ctx context.Context, tx *sql.Tx, room string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM heard WHERE room = ?`, room)
	return err
}
