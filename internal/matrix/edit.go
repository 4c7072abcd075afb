package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/matrix/retry"
)

// onEdit takes in what replaces a message, and tells whether evt is of that kind. Whose
// message it replaces, and whether we know that, is seen to by change.
func (c *Client) onEdit(ctx context.Context, b *batch, evt *event.Event, room roomFacts) (edits bool, err error) {
	msg, ok := evt.Content.Parsed.(*event.MessageEventContent)
	if !ok || msg.RelatesTo == nil || msg.RelatesTo.Type != event.RelReplace {
		return false, nil
	}
	no := func(reason string) (bool, error) {
		c.log.Debug("matrix: edit not taken", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "because", reason)
		return true, nil
	}
	target := msg.RelatesTo.EventID
	if target == "" || msg.NewContent == nil {
		return no("it does not say what it replaces, or by what")
	}
	plain := *msg.NewContent
	plain.RelatesTo, plain.NewContent = nil, nil
	now := *evt
	now.Content.Parsed = &plain
	o := c.gate.judge(&now, room, func(id.EventID) bool { return false })
	files := c.filesOf(&plain, evt.Mautrix.WasEncrypted) // of a file it is what is written beside that; the file stays
	switch {
	case !o.may: // that its words are not to us may not matter: the message was
		return no(o.reason)
	case o.text == "" && !slices.ContainsFunc(files, func(f chat.File) bool { return f.Source != "" }):
		return no("it leaves neither words nor a file")
	}
	in, err := c.inbound(ctx, evt, room)
	if err != nil {
		return true, err
	}
	in.SenderName, in.Text, in.Files = c.displayName(ctx, evt.RoomID, evt.Sender), o.text, files
	in.Change, in.Target = chat.Edited, target.String()
	b.in = append(b.in, incoming{addressed: o.pass, Inbound: in})
	return true, nil
}

// gesture is a redaction or reaction as the session gets it.
func (c *Client) gesture(ctx context.Context, evt *event.Event) (chat.Inbound, error) {
	room, err := c.facts(ctx, evt.RoomID)
	if err != nil {
		return chat.Inbound{}, err
	}
	return c.inbound(ctx, evt, room)
}

// gestures are the reactions that do something, without what makes an emoji of a sign.
// Reactions are not encrypted, so a homeserver can make them up: they must never do more.
var gestures = map[string]chat.Change{
	"❌": chat.StopThis, "✖": chat.StopThis, "🛑": chat.StopThis,
	"🔁": chat.AskAgain, "🔄": chat.AskAgain,
}

// onReaction takes in a reaction of somebody we listen to. Whether that person may do
// what it asks for is seen to by change.
func (c *Client) onReaction(ctx context.Context, b *batch, evt *event.Event) error {
	content, ok := evt.Content.Parsed.(*event.ReactionEventContent)
	if !ok || evt.Mautrix.EventSource&event.SourceLeave != 0 || evt.StateKey != nil || evt.Unsigned.RedactedBecause != nil {
		return nil
	}
	what, known := gestures[strings.ReplaceAll(content.RelatesTo.Key, "\ufe0f", "")]
	if !known || content.RelatesTo.Type != event.RelAnnotation || content.RelatesTo.EventID == "" || !c.gate.allows(evt.Sender.String()) {
		return nil
	}
	in, err := c.gesture(ctx, evt)
	in.Change, in.Target = what, content.RelatesTo.EventID.String()
	b.in = append(b.in, incoming{addressed: slices.Contains(c.cfg.Owners, in.Sender) && !in.Unproven, Inbound: in})
	return err
}

// inboxRow is what the inbox says of an event.
type inboxRow struct {
	room, sender, state, target string
	change                      chat.Change
	at                          int64
	unproven                    bool
	gone                        bool // it was taken back
}

func (q *queue) inboxRow(ctx context.Context, tx *sql.Tx, event string) (r inboxRow, known bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT room, sender, state, change, target, sent_at, unproven, state = 'redacted' OR EXISTS (
		SELECT 1 FROM inbox AS b WHERE b.target = inbox.id AND b.change = 'taken back') FROM inbox WHERE id = ?`, event).
		Scan(&r.room, &r.sender, &r.state, &r.change, &r.target, &r.at, &r.unproven, &r.gone)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// targetOf is the message that ch is done to: an edit stands for what it edits.
func (q *queue) targetOf(ctx context.Context, tx *sql.Tx, ch *incoming) (of inboxRow, known bool, err error) {
	of, known, err = q.inboxRow(ctx, tx, ch.Target)
	if err == nil && known && of.change == chat.Edited {
		ch.Target = of.target
		of, known, err = q.inboxRow(ctx, tx, ch.Target)
	}
	return of, known, err
}

// change stores ch if it is worth anything: it waits in the inbox until the session has
// dealt with what it is done to.
func (q *queue) change(ctx context.Context, tx *sql.Tx, ch incoming) error {
	switch ch.Change {
	case chat.Edited:
		return q.edit(ctx, tx, ch)
	case chat.TakenBack:
		return q.takenBack(ctx, tx, ch)
	case chat.Voted:
		return q.voted(ctx, tx, ch)
	}
	return q.reacted(ctx, tx, ch)
}

// edit stores an edit of somebody's own message: the newest one counts, in the order of
// the stream. Words that somebody is proven to have written are not replaced by others.
func (q *queue) edit(ctx context.Context, tx *sql.Tx, ch incoming) error {
	of, known, err := q.targetOf(ctx, tx, &ch)
	if err != nil {
		return err
	}
	switch {
	case !known, of.sender != ch.Sender, of.room != ch.Room, of.change != "", of.gone, ch.Unproven && !of.unproven:
		return nil
	}
	var again bool // it came before
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ? AND state NOT IN ('utd', 'failed'))`, ch.ID).Scan(&again); err != nil || again {
		return err
	}
	switch {
	case of.state == "utd" || of.state == "failed" || of.state == "dead": // these are its words now, and they can be read
		if !ch.addressed {
			return nil
		}
		m := ch.Inbound
		m.ID, m.At, m.Change, m.Target = ch.Target, time.UnixMilli(of.at), "", ""
		if _, err := tx.ExecContext(ctx, `DELETE FROM inbox WHERE id = ?`, m.ID); err != nil {
			return err
		}
		return q.put(ctx, tx, m, "new")
	case of.state == "new":
		if _, err := tx.ExecContext(ctx, `UPDATE inbox SET text = ?1 WHERE id = ?2 AND state = 'new' AND (?1 <> '' OR instr(brought, '"files"') > 0)`, ch.Text, ch.Target); err != nil {
			return err
		}
	}
	ch.At, ch.Files = time.UnixMilli(of.at), nil
	return q.put(ctx, tx, ch.Inbound, "new")
}

// takenBack stores that a message of somebody, or of ours, was taken back. An edit that
// is taken back takes its message with it: nobody knows any more what that said before.
func (q *queue) takenBack(ctx context.Context, tx *sql.Tx, ch incoming) error {
	of, known, err := q.targetOf(ctx, tx, &ch)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO redaction (event) VALUES (?) ON CONFLICT DO NOTHING`, ch.Target); err != nil {
		return err
	}
	if known && of.change != "" {
		return nil // a reaction: what it did is done
	}
	if !known {
		reply, ours, err := q.replyOf(ctx, tx, ch.Target)
		if err != nil || !ours {
			return err
		}
		var file bool // that a tool sent: what was said of it stands
		if err := tx.QueryRowContext(ctx, `SELECT instr(id, ?) > 0 FROM outbox WHERE event_id = ?`, chat.SentMark, ch.Target).Scan(&file); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, gone+` WHERE event_id = ?`, ch.Target); err != nil || file {
			return err
		}
		ch.Target = reply
		// An answer of several messages is one: what is left of it says what history forgets.
		if err := q.remove(ctx, tx, `(id = ?1 OR `+partsOf+`) AND substr(id, length(?1) + 1, ?2) <> ?3`, reply, len(chat.SentMark), chat.SentMark); err != nil {
			return err
		}
	}
	for _, query := range []string{
		`UPDATE inbox SET state = 'redacted', text = '', brought = '' WHERE target = ?1 AND change = 'edited' AND state = 'new'`,
		`UPDATE inbox SET state = 'redacted', text = '', raw = '', brought = '' WHERE id = ?1 AND state IN ('new', 'utd', 'failed')`,
	} {
		if _, err := tx.ExecContext(ctx, query, ch.Target); err != nil {
			return err
		}
	}
	return q.put(ctx, tx, ch.Inbound, "new")
}

// reacted stores a reaction to what its sender has asked, or to our answer to that. An
// owner may do so with anybody's.
func (q *queue) reacted(ctx context.Context, tx *sql.Tx, ch incoming) error {
	of, known, err := q.targetOf(ctx, tx, &ch)
	if err != nil {
		return err
	}
	asker, room := of.sender, of.room
	switch {
	case known && (of.change != "" || of.gone):
		return nil
	case !known:
		reply, ours, err := q.replyOf(ctx, tx, ch.Target)
		if err != nil || !ours {
			return err
		}
		ch.Target = reply
		err = tx.QueryRowContext(ctx, `SELECT o.room, coalesce(i.sender, '') FROM outbox AS o LEFT JOIN inbox AS i ON i.id = o.reply_to WHERE o.id = ?`, reply).Scan(&room, &asker)
		if err != nil {
			return err
		}
	}
	if room != ch.Room || asker != ch.Sender && !ch.addressed {
		return nil
	}
	return q.put(ctx, tx, ch.Inbound, "new")
}

// replyOf names the message of ours that the event carries, or carries a part of.
func (q *queue) replyOf(ctx context.Context, tx *sql.Tx, event string) (reply string, ours bool, err error) {
	var isPoll bool
	err = tx.QueryRowContext(ctx, `SELECT id, poll <> '' FROM outbox WHERE event_id = ? AND event_id <> ''`, event).Scan(&reply, &isPoll)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	for whole := reply; err == nil && !isPoll; { // a part is named after what it is of
		at := max(strings.LastIndex(whole, "-"), strings.LastIndex(whole, "+"))
		if at <= 0 {
			break
		}
		whole = whole[:at]
		var n int
		if err = tx.QueryRowContext(ctx, `SELECT count(*) FROM outbox WHERE id = ?`, whole).Scan(&n); n > 0 {
			reply = whole
		}
	}
	return reply, err == nil, err
}

// gone takes rows out of the outbox whose events are not to be seen any more. Another
// event may come of them later; it needs another transaction id.
const gone = `UPDATE outbox SET state = 'dead', event_id = '', text = '', error = 'taken back', poll = '', closed = 0, drafted = 0, revision = 0, generation = generation + 1`

// remove takes rows out of the outbox, and their events out of the room.
func (q *queue) remove(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO takeback (event_id, room, reason) SELECT event_id, room, 'why.taken_back' FROM outbox
		WHERE event_id <> '' AND `+where+` ON CONFLICT DO NOTHING`, args...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, gone+` WHERE error <> 'taken back' AND `+where, args...)
	return err
}

// partsOf is the condition for rows that belong to the message ?1: files with all of it or that a
// tool sent, and further messages of one that an earlier version sent in parts. A poll is no
// part, whatever its name. The bounds are for the index, which knows no substr: what has been said so far is not read.
const partsOf = `(id > ?1 || '+' AND id < ?1 || '.' AND substr(id, 1, length(?1) + 1) IN (?1 || '-', ?1 || '+') AND poll = '')`

// Redact takes our message id out of room, with its files, also what is being sent
// right now. It is durable when Redact returns, and may be repeated. One that was never
// said is no error, and no draft of it is shown any more.
func (c *Client) Redact(ctx context.Context, room, id string) error {
	c.mu.Lock()
	delete(c.drafts, id)
	c.mu.Unlock()
	err := c.q.inTx(ctx, func(tx *sql.Tx) error {
		if err := c.q.remove(ctx, tx, `(id = ?1 OR `+partsOf+`)`, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, state, error, created_at) VALUES (?, ?, 'dead', 'taken back', ?) ON CONFLICT DO NOTHING`, id, room, c.q.now().UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("matrix: take a message of ours back: %w", err)
	}
	retry.Wake(c.outWake)
	return nil
}

// txn is the transaction id of the event that carries r.
func (r outRow) txn() string {
	if r.generation == 0 {
		return r.id
	}
	return r.id + "~" + strconv.Itoa(r.generation)
}

// ofTxn is the message that a transaction id belongs to, and which of its events.
func ofTxn(txn string) (id string, generation int) {
	if at := strings.LastIndexByte(txn, '~'); at > 0 {
		if n, err := strconv.Atoi(txn[at+1:]); err == nil {
			return txn[:at], n
		}
	}
	return txn, 0
}

func (q *queue) txnOf(ctx context.Context, id string) (string, error) {
	generation, err := value[int](ctx, q.db, `SELECT generation FROM outbox WHERE id = ?`, id)
	if err != nil {
		return "", fmt.Errorf("matrix: read outbox: %w", err)
	}
	return outRow{id: id, generation: generation}.txn(), nil
}
