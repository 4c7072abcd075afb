package matrix

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/session"
	"reverie/internal/store"
)

// What is kept of a room's talk that is not for us, until we are asked something there.
const (
	heardKept  = 30 // lines of a room
	heardFor   = 24 * time.Hour
	heardRunes = 1_000 // runes of one
	givenLines = 20    // with one message
	givenRunes = 4_000
)

// heardLine is something that was said in a room with others, and not to us.
type heardLine struct {
	session.Quote
	room, thread string
	edit         bool   // it says what the line ID reads now
	after        string // the message for us that it came after in its batch; empty = none
}

// notTaken does what there is to do about a message that is not for us.
func (c *Client) notTaken(ctx context.Context, b *batch, evt *event.Event, o opinion) error {
	msg, _ := evt.Content.Parsed.(*event.MessageEventContent)
	line := heardLine{room: evt.RoomID.String(), after: lastIn(b, evt.RoomID.String()), Quote: session.Quote{
		ID: evt.ID.String(), Sender: evt.Sender.String(), At: time.UnixMilli(evt.Timestamp), Why: session.QuoteHeard}}
	if o.odd != "" {
		odd := c.cfg.Text(ctx, line.room, "odd."+o.odd)
		if !slices.ContainsFunc(b.notices, func(n notice) bool { return n.room == line.room && n.text == odd }) { // ten stickers are one answer
			b.notices = append(b.notices, notice{id: "odd-" + line.ID, room: line.room, text: odd, replyTo: line.ID})
		}
	}
	if o.heard == "" {
		return nil
	}
	listening, err := c.listening(ctx, line.room)
	if listening {
		line.Name, line.Text = c.displayName(ctx, evt.RoomID, evt.Sender), clip(o.heard, heardRunes)
		if o.emote {
			line.Text = emote(line.Name, line.Sender, line.Text)
		}
		line.thread = msg.RelatesTo.GetThreadParent().String()
		b.heard = append(b.heard, line)
	}
	return err
}

// heardAnew takes in what edits something that was heard in a room with others.
func (c *Client) heardAnew(b *batch, evt *event.Event, room roomFacts) {
	msg, ok := evt.Content.Parsed.(*event.MessageEventContent)
	if !ok || msg.NewContent == nil || room.pair() || room.encrypted && !evt.Mautrix.WasEncrypted {
		return
	}
	line := heardLine{room: evt.RoomID.String(), edit: true, after: lastIn(b, evt.RoomID.String()), Quote: session.Quote{
		ID: msg.RelatesTo.GetReplaceID().String(), Sender: evt.Sender.String(), Text: clip(clean(said(msg.NewContent)), heardRunes)}}
	b.heard = append(b.heard, line)
}

// lastIn is the last message of a batch that is for us in room; empty = there is none.
func lastIn(b *batch, room string) string {
	last := ""
	for _, m := range b.in {
		if m.Room == room {
			last = m.ID
		}
	}
	return last
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
	v, err := session.Settings{DB: c.q.db}.Get(ctx, room, session.SettingListen)
	return v == "on", err
}

// listens notes whether m, which is for us, is to take along what was heard before it.
// A command has no use for that.
func (c *Client) listens(ctx context.Context, b *batch, m session.Inbound) error {
	if m.Private || session.Commands(m.Text) {
		return nil
	}
	listening, err := c.listening(ctx, m.Room)
	if listening {
		b.listen = append(b.listen, m.ID)
	}
	return err
}

// keyless is an event, of somebody who may not talk to the bot, whose key had not come with it.
type keyless struct {
	session id.SessionID
	evt     *event.Event
}

// keylessKept is how many events wait for their keys at once, of all rooms.
const keylessKept = 30

// awaitKey keeps evt until its key comes. A homeserver may hand out a key a moment after the
// event. Of too many the oldest go.
func (c *Client) awaitKey(s id.SessionID, evt *event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keyless = append(c.keyless, keyless{s, evt})
	c.keyless = c.keyless[max(0, len(c.keyless)-keylessKept):]
}

// dropKeyless lets go of an event that was taken back.
func (c *Client) dropKeyless(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keyless = slices.DeleteFunc(c.keyless, func(k keyless) bool { return k.evt.ID.String() == event })
}

// hearLate hears what was said with a key that has come.
func (c *Client) hearLate(ctx context.Context, s id.SessionID) error {
	var now []*event.Event
	c.mu.Lock()
	c.keyless = slices.DeleteFunc(c.keyless, func(k keyless) bool {
		if k.session == s {
			now = append(now, k.evt)
		}
		return k.session == s
	})
	c.mu.Unlock()
	b := &batch{}
	for _, evt := range now {
		c.cli.Syncer.(*syncer).Dispatch(context.WithValue(ctx, batchKey{}, b), evt)
	}
	if b.err != nil || len(b.heard) == 0 {
		return b.err
	}
	return c.q.inTx(ctx, func(tx *sql.Tx) error { return c.q.hear(ctx, tx, b, "") })
}

// hear stores what was heard after a message of the batch, and forgets what is too old or
// too much.
func (q *queue) hear(ctx context.Context, tx *sql.Tx, b *batch, after string) error {
	for _, h := range b.heard {
		if h.after != after {
			continue
		}
		if h.edit {
			if err := q.amend(ctx, tx, h); err != nil {
				return err
			}
			continue
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
	}
	return nil
}

// give adds to m what was heard where it was said since the last time. Each line is given
// once: the history has it then.
func (q *queue) give(ctx context.Context, tx *sql.Tx, m *session.Inbound) error {
	var known bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ? AND state NOT IN ('utd', 'failed'))`, m.ID).Scan(&known); err != nil || known {
		return err
	}
	lines, err := store.List(ctx, tx, func(row store.Row) (session.Quote, error) {
		l := session.Quote{Why: session.QuoteHeard}
		var at int64
		err := row.Scan(&l.ID, &l.Sender, &l.Name, &l.Text, &at)
		l.At = time.UnixMilli(at)
		return l, err
	}, `SELECT event, sender, name, text, at FROM heard
		WHERE room = ? AND thread = ? AND given = 0 AND heard_at >= ? ORDER BY seq DESC LIMIT ?`, m.Room, m.Thread, q.now().Add(-heardFor).UnixMilli(), givenLines)
	if err != nil {
		return fmt.Errorf("read what was heard: %w", err)
	}
	left := givenRunes
	if over := slices.IndexFunc(lines, func(l session.Quote) bool { left -= utf8.RuneCountInString(l.Text); return left < 0 }); over >= 0 {
		lines = lines[:over]
	}
	slices.Reverse(lines)
	m.Quotes = append(m.Quotes, lines...)
	_, err = tx.ExecContext(ctx, `UPDATE heard SET given = 1, text = '' WHERE room = ? AND thread = ?`, m.Room, m.Thread)
	return doing("note what was given of what was heard", err)
}

// amend has a line that was heard say what its sender made of it since. One that was
// given already stays.
func (q *queue) amend(ctx context.Context, tx *sql.Tx, e heardLine) error {
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
