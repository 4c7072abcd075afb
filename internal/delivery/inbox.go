package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Inbox stores messages to the bot and changes to earlier ones (edits, redactions, reactions,
// votes). The states of a row:
//
//	Commit ─┬──────────► new ──┬─ MarkDone ──────────────► done
//	        │             ▲    └─ redaction, ClearRoom ──► redacted
//	        │             │
//	        │             ├─ Commit: it was read, and needs an answer
//	        │             ├─ readable edit: it becomes the message
//	        │             │
//	        ├─► utd ⇄ failed ──┬─ Commit: no answer ─────► done
//	        │    RetryRead     ├─ redaction, ClearRoom ──► redacted
//	        │                  └─ GiveUp ────────────────► dead ── readable edit ──► new
//	        │
//	        └─ too old to be answered ───────────────────► done
//
// Only new rows are delivered, in the order of seq. Rows in done, dead or redacted stay, without
// their text: the id prevents handling the same event twice.
type Inbox struct {
	db      *store.DB
	now     func() time.Time
	out     *Outbox
	group   groupContext
	isRetry func(text string) bool
}

// InboxRow is a row of the inbox: a message, or a change to an earlier one.
type InboxRow struct {
	Seq        int64        // in order of arrival
	Incomplete bool         // quotes or files have to be fetched before delivery
	Message    chat.Message // for a change only its head, and in Text the text of an edit or the option of a vote
	Target     string       // the event that is changed; empty = a message
	Change     string       // the kind of change
}

// rowOf converts an event to a row. A reaction is named by its wish.
func rowOf(said chat.Inbound) InboxRow {
	r := InboxRow{Message: chat.Message{Head: chat.HeadOf(said)}, Target: chat.TargetOf(said)}
	switch said := said.(type) {
	case chat.Message:
		r.Message = said
	case chat.Edit:
		r.Change, r.Message.Text = "edited", said.Text
	case chat.Redaction:
		r.Change = "redacted"
	case chat.Vote:
		r.Change, r.Message.Text = "voted", said.Option
	case chat.Reaction:
		r.Change = string(said.Action)
	}
	return r
}

// Inbound converts the row back to its event.
func (r InboxRow) Inbound() chat.Inbound {
	change := chat.Change{Head: r.Message.Head, Target: r.Target}
	switch r.Change {
	case "":
		return r.Message
	case "edited":
		return chat.Edit{Change: change, Text: r.Message.Text}
	case "redacted":
		return chat.Redaction{Change: change}
	case "voted":
		return chat.Vote{Change: change, Option: r.Message.Text}
	}
	return chat.Reaction{Change: change, Action: chat.Action(r.Change)}
}

// insert stores a message or change once. An event that was unreadable before moves to the end,
// because later ones have been delivered since.
func (in *Inbox) insert(ctx context.Context, tx *sql.Tx, said chat.Inbound, state string) error {
	r := rowOf(said)
	m := &r.Message
	if _, err := tx.ExecContext(ctx, `DELETE FROM inbox WHERE id = ? AND state IN ('utd', 'failed')`, m.ID); err != nil {
		return err
	}
	with, err := pack(*m)
	switch {
	case err != nil:
	case r.Change != "":
		m.Branch, err = threadOfTarget(ctx, tx, r.Target)
	case state == "new":
		err = in.joinRecentThread(ctx, tx, m)
	}
	if err != nil {
		return err
	}
	return store.Exec(ctx, tx, `INSERT OR IGNORE INTO inbox (id, room, sender, text, private, unverified, sent_at, received_at,
			state, thread, answer_thread, reply_to, attachments, incomplete, change, target)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, m.Room, m.Sender, m.Text, m.Private, m.Unproven, m.At.UnixMilli(), in.now().UnixMilli(), state,
		m.Thread, m.Branch, m.ReplyTo, with, state == "new" && r.Change == "" && incomplete(*m), r.Change, r.Target)
}

// incomplete reports whether m refers to events or files that must be fetched before delivery.
func incomplete(m chat.Message) bool {
	return m.ReplyTo != "" || m.Thread != "" || slices.ContainsFunc(m.Files, func(f chat.File) bool { return f.Source != "" })
}

// isStored reports whether an event is stored in a readable state.
func isStored(ctx context.Context, tx *sql.Tx, event string) (bool, error) {
	return store.Value[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ? AND state NOT IN ('utd', 'failed'))`, event)
}

// attachments are the parts of a message besides its text, as stored in JSON.
type attachments struct {
	Quotes []chat.Quote `json:"quotes,omitempty"`
	Files  []chat.File  `json:"files,omitempty"`
}

func pack(m chat.Message) (string, error) {
	if len(m.Quotes)+len(m.Files) == 0 {
		return "", nil
	}
	b, err := json.Marshal(attachments{m.Quotes, m.Files})
	return string(b), err
}

// unpack sets m's attachments from their stored form.
func unpack(m *chat.Message, packed string) error {
	if packed == "" {
		return nil
	}
	var b attachments
	if err := json.Unmarshal([]byte(packed), &b); err != nil {
		return fmt.Errorf("delivery: read the attachments of %s: %w", m.ID, err)
	}
	m.Quotes, m.Files = b.Quotes, b.Files
	return nil
}

// Waiting returns the oldest unanswered messages, in order of arrival, without those in handed, which are being worked
// on. With those there are at most perRoom of a room. It removes what is answered from handed; its keys are Seq.
func (in *Inbox) Waiting(ctx context.Context, handed map[int64]bool, perRoom int) ([]InboxRow, error) {
	var more, still []int64
	last, inRoom := "", 0
	err := store.Each(ctx, in.db, func(row store.Row) error {
		var room string
		var seq int64
		err := row.Scan(&room, &seq)
		if room != last {
			last, inRoom = room, 0
		}
		if inRoom++; handed[seq] {
			still = append(still, seq)
		} else if inRoom <= perRoom {
			more = append(more, seq)
		}
		return err
	}, `SELECT room, seq FROM inbox WHERE state = 'new' ORDER BY room, seq`)
	if err != nil {
		return nil, err
	}
	clear(handed)
	for _, seq := range still {
		handed[seq] = true
	}
	if more == nil {
		return nil, nil
	}
	return store.List(ctx, in.db, func(row store.Row) (r InboxRow, err error) {
		m := &r.Message
		var at int64
		var with string
		if err := row.Scan(&r.Seq, &m.ID, &m.Room, &m.Sender, &m.Text, &m.Private, &m.Unproven, &at, &m.Thread,
			&m.Branch, &m.ReplyTo, &with, &r.Incomplete, &r.Change, &r.Target); err != nil {
			return r, err
		}
		err = unpack(m, with)
		m.At = time.UnixMilli(at)
		return r, err
	}, `SELECT seq, id, room, sender, text, private, unverified, sent_at, thread, answer_thread,
			reply_to, attachments, incomplete, change, target
		FROM inbox WHERE seq IN (SELECT value FROM json_each(?)) AND state = 'new' ORDER BY seq`, store.Array(more))
}

// StoreCompleted stores the quotes and files that complete m. If m was redacted meanwhile, it does
// nothing.
func (in *Inbox) StoreCompleted(ctx context.Context, m chat.Message) error {
	m.Quotes = in.withoutRedacted(ctx, m)
	with, err := pack(m)
	if err != nil {
		return err
	}
	return store.Exec(ctx, in.db, `UPDATE inbox SET attachments = ?, incomplete = 0 WHERE id = ? AND state = 'new'`, with, m.ID)
}

// withoutRedacted returns m's quotes without lines that were redacted while m was being completed.
func (in *Inbox) withoutRedacted(ctx context.Context, m chat.Message) []chat.Quote {
	var now chat.Message
	var with string
	err := in.db.QueryRowContext(ctx, `SELECT attachments FROM inbox WHERE id = ?`, m.ID).Scan(&with)
	if err != nil || unpack(&now, with) != nil {
		return m.Quotes
	}
	return slices.DeleteFunc(m.Quotes, func(x chat.Quote) bool {
		return x.Why == chat.QuoteContext && !slices.ContainsFunc(now.Quotes, func(y chat.Quote) bool { return y.ID == x.ID })
	})
}

// MarkDone marks a message as answered and deletes its text, which the history has now. db may be
// the transaction that stores the answer.
func (in *Inbox) MarkDone(ctx context.Context, db store.DBTX, id string) error {
	return store.Exec(ctx, db, `UPDATE inbox SET state = 'done', text = '', attachments = '' WHERE id = ? AND state = 'new'`, id)
}

// InboxState returns the state of a message; empty = unknown.
func InboxState(ctx context.Context, db store.DBTX, id string) (string, error) {
	return store.Value[string](ctx, db, `SELECT state FROM inbox WHERE id = ?`, id)
}

// Origin returns the sender and thread of a message, and the event that a reply to it refers to: of a
// vote that is the poll. All are empty for an unknown message.
func (in *Inbox) Origin(ctx context.Context, id string) (sender, thread, event string) {
	_ = in.db.QueryRowContext(ctx, `SELECT sender, thread,
		coalesce((SELECT event_id FROM outbox WHERE inbox.change = 'voted' AND outbox.id = inbox.target), id)
		FROM inbox WHERE id = ?`, id).Scan(&sender, &thread, &event)
	return sender, thread, event
}

// ClearRoom drops pending messages of a room that the bot has left. Its questions become redacted.
func (in *Inbox) ClearRoom(ctx context.Context, room string) error {
	return store.InTx(ctx, in.db, func(tx *sql.Tx) error {
		if err := redactRows(ctx, tx, `room = ?`, room); err != nil {
			return err
		}
		if err := store.Exec(ctx, tx, `DELETE FROM group_message WHERE room = ?`, room); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `UPDATE outbox SET state = 'dead', error = 'no longer in this room'
			WHERE room = ? AND state IN ('draft', 'pending')`, room)
	})
}

// redactRows marks unanswered rows as redacted.
func redactRows(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	return store.Exec(ctx, tx, `UPDATE inbox SET state = 'redacted', text = '', raw = '', attachments = ''
		WHERE state IN ('new', 'utd', 'failed') AND `+where, args...)
}

// HasPending reports whether a room has unanswered or unsent messages.
func (in *Inbox) HasPending(ctx context.Context, room string) (bool, error) {
	return store.Value[bool](ctx, in.db, `SELECT EXISTS (SELECT 1 FROM inbox WHERE room = ?1 AND state = 'new')
		OR EXISTS (SELECT 1 FROM outbox WHERE room = ?1 AND state IN ('draft', 'pending'))`, room)
}

// KeptFiles lists the stored files that unanswered or unsent messages need.
func (in *Inbox) KeptFiles(ctx context.Context) ([]string, error) {
	return store.Column[string](ctx, in.db, `SELECT path FROM (
			SELECT f.value ->> '$.path' AS path FROM inbox, json_each(nullif(attachments, ''), '$.files') AS f WHERE state = 'new'
			UNION ALL SELECT file ->> '$.path' FROM outbox WHERE file <> '' AND state IN ('draft', 'pending'))
		WHERE path <> ''`)
}
