package matrix

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/session"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/text"
)

// What is kept of a room's talk that is not for us, until we are asked something there.
const (
	heardKept  = 20 // lines of a room
	heardFor   = 24 * time.Hour
	heardRunes = 1_000 // runes of one
	givenRunes = 4_000 // with one message
)

// heardLine is something that was said in a room with others, and not to us.
type heardLine struct {
	chat.Quote
	room, thread string
	edit         bool // it says what the line ID reads now
}

// hears keeps what was said in a room with others and not to us.
func (c *Client) hears(ctx context.Context, b *batch, evt *event.Event, o opinion) error {
	if o.heard == "" {
		return nil
	}
	line := &heardLine{room: evt.RoomID.String(), Quote: chat.Quote{ID: evt.ID.String(), Sender: evt.Sender.String(),
		Name: c.displayName(ctx, evt.RoomID, evt.Sender), At: time.UnixMilli(evt.Timestamp), Text: text.Clip(o.heard, heardRunes)}}
	if o.emote {
		line.Text = emote(line.Name, line.Sender, line.Text)
	}
	if msg, ok := evt.Content.Parsed.(*event.MessageEventContent); ok {
		line.thread = msg.RelatesTo.GetThreadParent().String()
	}
	listening, err := c.listening(ctx, line.room)
	if listening {
		b.in = append(b.in, incoming{heard: line})
	}
	return err
}

// heardAnew takes in what edits something that was heard in a room with others.
func (c *Client) heardAnew(b *batch, evt *event.Event, room roomFacts) {
	msg, ok := evt.Content.Parsed.(*event.MessageEventContent)
	if !ok || msg.NewContent == nil || room.pair() || room.encrypted && !evt.Mautrix.WasEncrypted {
		return
	}
	b.in = append(b.in, incoming{heard: &heardLine{room: evt.RoomID.String(), edit: true, Quote: chat.Quote{
		ID: msg.RelatesTo.GetReplaceID().String(), Sender: evt.Sender.String(), Text: text.Clip(text.Clean(said(msg.NewContent)), heardRunes)}}})
}

// emote is what somebody does, in words.
func emote(name, sender, text string) string {
	if name == "" {
		name = sender
	}
	return "* " + name + " " + text
}

// listening tells whether what is not for us is to be kept for the next question.
func (c *Client) listening(ctx context.Context, room string) (bool, error) {
	v, err := settings.Store{DB: c.q.db}.Get(ctx, room, settings.Listen)
	return v == "on", err
}

// hear stores a line, and forgets what is too old or too much.
func (q *queue) hear(ctx context.Context, tx *sql.Tx, h *heardLine) error {
	if h.edit {
		return q.amend(ctx, tx, h)
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`DELETE FROM heard WHERE heard_at < ?`, []any{q.now().Add(-heardFor).UnixMilli()}},
		{`INSERT OR IGNORE INTO heard (event, room, thread, sender, name, text, at, heard_at) SELECT ?1, ?, ?, ?, ?, ?, ?, ?
			WHERE NOT EXISTS (SELECT 1 FROM redaction WHERE event = ?1)`,
			[]any{h.ID, h.room, h.thread, h.Sender, h.Name, h.Text, h.At.UnixMilli(), q.now().UnixMilli()}},
		{`DELETE FROM heard WHERE room = ?1 AND seq <= (SELECT seq FROM heard WHERE room = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`, []any{h.room, heardKept}},
	} {
		if _, err := tx.ExecContext(ctx, step.query, step.args...); err != nil {
			return fmt.Errorf("keep what was heard: %w", err)
		}
	}
	return nil
}

// give adds to m what was heard where it was said since the last time. Each line is given
// once: the history has it then.
func (q *queue) give(ctx context.Context, tx *sql.Tx, m *chat.Inbound) error {
	var known bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ? AND state NOT IN ('utd', 'failed'))`, m.ID).Scan(&known); err != nil || known {
		return err
	}
	lines, err := store.List(ctx, tx, func(row store.Row) (chat.Quote, error) {
		l := chat.Quote{Why: chat.QuoteHeard}
		var at int64
		err := row.Scan(&l.ID, &l.Sender, &l.Name, &l.Text, &at)
		l.At = time.UnixMilli(at)
		return l, err
	}, `SELECT event, sender, name, text, at FROM heard
		WHERE room = ? AND thread = ? AND given = 0 AND heard_at >= ? ORDER BY seq DESC`, m.Room, m.Thread, q.now().Add(-heardFor).UnixMilli())
	if err != nil {
		return fmt.Errorf("read what was heard: %w", err)
	}
	left := givenRunes
	if over := slices.IndexFunc(lines, func(l chat.Quote) bool { left -= utf8.RuneCountInString(l.Text); return left < 0 }); over >= 0 {
		lines = lines[:over]
	}
	slices.Reverse(lines)
	m.Quotes = append(m.Quotes, lines...)
	_, err = tx.ExecContext(ctx, `UPDATE heard SET given = 1, text = '' WHERE room = ? AND thread = ?`, m.Room, m.Thread)
	return doing("note what was given of what was heard", err)
}

// amend has a line that was heard say what its sender made of it since. One that was
// given already stays.
func (q *queue) amend(ctx context.Context, tx *sql.Tx, e *heardLine) error {
	query, args := `UPDATE heard SET text = ?3 WHERE event = ?1 AND sender = ?2 AND given = 0`, []any{e.ID, e.Sender, e.Text}
	if e.Text == "" || session.Commands(e.Text) {
		query, args = `DELETE FROM heard WHERE event = ?1 AND sender = ?2 AND given = 0`, args[:2]
	}
	_, err := tx.ExecContext(ctx, query, args...)
	return doing("change what was heard", err)
}

// unhear forgets what was heard as event, also where it waits as a quote.
func (q *queue) unhear(ctx context.Context, tx *sql.Tx, event string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE heard SET given = 1, text = '' WHERE event = ?`, event); err != nil {
		return fmt.Errorf("forget what was heard: %w", err)
	}
	_, err := tx.ExecContext(ctx, `UPDATE inbox SET brought = json_set(brought, '$.quotes',
			json((SELECT json_group_array(json(value)) FROM json_each(brought, '$.quotes') WHERE value ->> '$.id' <> ?1)))
		WHERE state = 'new' AND instr(brought, ?1) > 0`, event)
	return doing("forget what was heard", err)
}
