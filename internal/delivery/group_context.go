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

// Limits of the group context.
const (
	maxContextLines = 20 // per room
	maxContextAge   = 24 * time.Hour
	maxContextRunes = 4_000 // per message
)

// groupContext stores messages in group rooms that are not addressed to the bot. The next message to
// the bot takes them along as context. The states of a row:
//
//	store ──► waiting ── attach, redact ──► given (without its text)
//	          (delivered = 0)               (delivered = 1)
//
// A line is deleted when it is too old, when its room has too many, when an edit empties it, and when
// the bot leaves the room.
type groupContext struct{ now func() time.Time }

// Line is a message in a group room that is not addressed to the bot.
type Line struct {
	chat.Quote
	Room, Thread string
	Edit         bool // it is the new text of the line ID; an empty text deletes it
}

// store adds a line and deletes old and surplus ones.
func (h groupContext) store(ctx context.Context, tx *sql.Tx, l *Line) error {
	if l.Edit {
		return h.edit(ctx, tx, l)
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`DELETE FROM group_message WHERE received_at < ?`, []any{h.now().Add(-maxContextAge).UnixMilli()}},
		{`INSERT OR IGNORE INTO group_message (event, room, thread, sender, text, at, received_at) SELECT ?1, ?, ?, ?, ?, ?, ?
			WHERE NOT EXISTS (SELECT 1 FROM redacted_message WHERE event = ?1)`,
			[]any{l.ID, l.Room, l.Thread, l.Sender, l.Text, l.At.UnixMilli(), h.now().UnixMilli()}},
		{`DELETE FROM group_message WHERE room = ?1 AND seq <= (SELECT seq FROM group_message
			WHERE room = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`,
			[]any{l.Room, maxContextLines}},
	} {
		if err := store.Exec(ctx, tx, step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// edit replaces the text of a line, unless it was attached already.
func (groupContext) edit(ctx context.Context, tx *sql.Tx, l *Line) error {
	query, args := `UPDATE group_message SET text = ?3 WHERE event = ?1 AND sender = ?2 AND delivered = 0`, []any{l.ID, l.Sender, l.Text}
	if l.Text == "" {
		query, args = `DELETE FROM group_message WHERE event = ?1 AND sender = ?2 AND delivered = 0`, args[:2]
	}
	return store.Exec(ctx, tx, query, args...)
}

// attach adds to m the lines of its thread. Each line is attached once, because the history has it
// then.
func (h groupContext) attach(ctx context.Context, tx *sql.Tx, m *chat.Message) error {
	lines, err := store.List(ctx, tx, func(row store.Row) (chat.Quote, error) {
		l := chat.Quote{Why: chat.QuoteContext}
		var at int64
		err := row.Scan(&l.ID, &l.Sender, &l.Text, &at)
		l.At = time.UnixMilli(at)
		return l, err
	}, `SELECT event, sender, text, at FROM group_message
		WHERE room = ? AND thread = ? AND delivered = 0 AND received_at >= ? ORDER BY seq DESC`,
		m.Room, m.Thread, h.now().Add(-maxContextAge).UnixMilli())
	if err != nil {
		return err
	}
	left := maxContextRunes
	over := slices.IndexFunc(lines, func(l chat.Quote) bool { left -= utf8.RuneCountInString(l.Text); return left < 0 })
	if over >= 0 {
		lines = lines[:over]
	}
	slices.Reverse(lines)
	m.Quotes = append(m.Quotes, lines...)
	return store.Exec(ctx, tx, `UPDATE group_message SET delivered = 1, text = '' WHERE room = ? AND thread = ? AND delivered = 0`,
		m.Room, m.Thread)
}

// redact deletes the text of the line event, also where it waits as a quote.
func (groupContext) redact(ctx context.Context, tx *sql.Tx, event string) error {
	if err := store.Exec(ctx, tx, `UPDATE group_message SET delivered = 1, text = '' WHERE event = ?`, event); err != nil {
		return err
	}
	return store.Exec(ctx, tx, `UPDATE inbox SET attachments = json_set(attachments, '$.quotes',
			json((SELECT json_group_array(json(value)) FROM json_each(attachments, '$.quotes') WHERE value ->> '$.id' <> ?1)))
		WHERE state = 'new' AND instr(attachments, ?1) > 0`, event)
}
