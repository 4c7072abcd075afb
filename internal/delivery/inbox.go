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

// Inbox holds the messages to the bot, and what people do to earlier ones (edits, redactions,
// reactions, votes). The states of a row:
//
//	Commit ─┬──────────► new ──┬─ Handled ───────────────► done
//	        │             ▲    └─ redaction, Leave ──────► redacted
//	        │             │
//	        │             ├─ Commit: it is read, and wants an answer
//	        │             ├─ edit that can be read: these are its words now
//	        │             │
//	        ├─► utd ⇄ failed ──┬─ Commit: no answer ─► done
//	        │    RetryRead     ├─ redaction, Leave ──────► redacted
//	        │                  └─ GiveUp ────────────────► dead ── edit that can be read ──► new
//	        │
//	        └─ too old to be answered ───────────────────► done
//
// Only new rows are delivered, in the order of seq. A row in done, dead or redacted stays, without
// its text: its id keeps the same event from being taken again.
type Inbox struct {
	db      *sql.DB
	now     func() time.Time
	out     *Outbox
	heard   heard
	retries func(text string) bool
}

// InboxRow is a row of the inbox as it is stored: a message, or a change to an earlier one.
type InboxRow struct {
	Incomplete bool         // quotes or files are to be fetched before it is delivered
	Message    chat.Message // of a change its head, and in Text the words of an edit or the option of a vote
	Target     string       // what a change is done to; empty = it is a message
	Change     string       // what it does to that
}

// rowOf is the row of what a person wrote or did. A reaction is named by its wish.
func rowOf(said chat.Inbound) InboxRow {
	r := InboxRow{Message: chat.Message{Head: chat.HeadOf(said)}, Target: chat.TargetOf(said)}
	switch said := said.(type) {
	case chat.Message:
		r.Message = said
	case chat.Edit:
		r.Change, r.Message.Text = "edited", said.Text
	case chat.Redaction:
		r.Change = "taken back"
	case chat.Vote:
		r.Change, r.Message.Text = "voted", said.Option
	case chat.Reaction:
		r.Change = string(said.Action)
	}
	return r
}

// Said is what a person wrote or did, of its row.
func (r InboxRow) Said() chat.Inbound {
	change := chat.Change{Head: r.Message.Head, Target: r.Target}
	switch r.Change {
	case "":
		return r.Message
	case "edited":
		return chat.Edit{Change: change, Text: r.Message.Text}
	case "taken back":
		return chat.Redaction{Change: change}
	case "voted":
		return chat.Vote{Change: change, Option: r.Message.Text}
	}
	return chat.Reaction{Change: change, Action: chat.Action(r.Change)}
}

// put stores a message or change once. One that was unreadable until now gets a new place at the end,
// because later ones have been delivered since.
func (in *Inbox) put(ctx context.Context, tx *sql.Tx, said chat.Inbound, state string) error {
	r := rowOf(said)
	m := &r.Message
	if _, err := tx.ExecContext(ctx, `DELETE FROM inbox WHERE id = ? AND state IN ('utd', 'failed')`, m.ID); err != nil {
		return err
	}
	with, err := pack(*m)
	switch {
	case err != nil:
	case r.Change != "":
		m.Branch, err = branchOfTarget(ctx, tx, r.Target)
	case state == "new":
		err = in.joinBranch(ctx, tx, m)
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT OR IGNORE INTO inbox (id, room, sender, text, private, unproven, sent_at, received_at,
			state, thread, branch, reply_to, brought, incomplete, change, target)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, m.Room, m.Sender, m.Text, m.Private, m.Unproven, m.At.UnixMilli(), in.now().UnixMilli(), state,
		m.Thread, m.Branch, m.ReplyTo, with, state == "new" && r.Change == "" && incomplete(*m), r.Change, r.Target)
	return err
}

// incomplete tells whether m refers to something that is to be fetched before it is delivered.
func incomplete(m chat.Message) bool {
	return m.ReplyTo != "" || m.Thread != "" || slices.ContainsFunc(m.Files, func(f chat.File) bool { return f.Source != "" })
}

// taken tells whether an event is stored, and not as one that cannot be read.
func taken(ctx context.Context, tx *sql.Tx, event string) (bool, error) {
	return store.Value[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ? AND state NOT IN ('utd', 'failed'))`, event)
}

// brought is what a message has besides its text.
type brought struct {
	Quotes []chat.Quote `json:"quotes,omitempty"`
	Files  []chat.File  `json:"files,omitempty"`
}

func pack(m chat.Message) (string, error) {
	if len(m.Quotes)+len(m.Files) == 0 {
		return "", nil
	}
	b, err := json.Marshal(brought{m.Quotes, m.Files})
	return string(b), err
}

// unpack gives m what pack made of it.
func unpack(m *chat.Message, packed string) error {
	if packed == "" {
		return nil
	}
	var b brought
	if err := json.Unmarshal([]byte(packed), &b); err != nil {
		return fmt.Errorf("delivery: read what came with %s: %w", m.ID, err)
	}
	m.Quotes, m.Files = b.Quotes, b.Files
	return nil
}

// Waiting returns the messages that still need an answer: the oldest of each room, at most so
// many, in the order they came.
func (in *Inbox) Waiting(ctx context.Context, perRoom int) ([]InboxRow, error) {
	rows, err := store.List(ctx, in.db, func(row store.Row) (r InboxRow, err error) {
		m := &r.Message
		var at int64
		var with string
		if err := row.Scan(&m.ID, &m.Room, &m.Sender, &m.Text, &m.Private, &m.Unproven, &at, &m.Thread,
			&m.Branch, &m.ReplyTo, &with, &r.Incomplete, &r.Change, &r.Target); err != nil {
			return r, err
		}
		err = unpack(m, with)
		m.At = time.UnixMilli(at)
		return r, err
	}, `SELECT id, room, sender, text, private, unproven, sent_at, thread, branch,
			reply_to, brought, incomplete, change, target
		FROM (SELECT *, row_number() OVER (PARTITION BY room ORDER BY seq) AS place FROM inbox WHERE state = 'new')
		WHERE place <= ? ORDER BY seq`, perRoom)
	return rows, store.Wrap(err, "delivery: read inbox")
}

// Completed stores what a message was completed with. One that was redacted meanwhile stays as it is.
func (in *Inbox) Completed(ctx context.Context, m chat.Message) error {
	m.Quotes = in.withoutRedacted(ctx, m)
	with, err := pack(m)
	if err != nil {
		return err
	}
	_, err = in.db.ExecContext(ctx, `UPDATE inbox SET brought = ?, incomplete = 0 WHERE id = ? AND state = 'new'`, with, m.ID)
	return store.Wrap(err, "delivery: complete a message")
}

// withoutRedacted returns the quotes of m without lines that were redacted while it was completed.
func (in *Inbox) withoutRedacted(ctx context.Context, m chat.Message) []chat.Quote {
	var now chat.Message
	var with string
	err := in.db.QueryRowContext(ctx, `SELECT brought FROM inbox WHERE id = ?`, m.ID).Scan(&with)
	if err != nil || unpack(&now, with) != nil {
		return m.Quotes
	}
	return slices.DeleteFunc(m.Quotes, func(x chat.Quote) bool {
		return x.Why == chat.QuoteContext && !slices.ContainsFunc(now.Quotes, func(y chat.Quote) bool { return y.ID == x.ID })
	})
}

// Handled marks a message as done and drops its text: the history has it now, and here only the
// id is needed. db may be the transaction that stores the answer.
func (in *Inbox) Handled(ctx context.Context, db store.DBTX, id string) error {
	_, err := db.ExecContext(ctx, `UPDATE inbox SET state = 'done', text = '', brought = '' WHERE id = ? AND state = 'new'`, id)
	return store.Wrap(err, "delivery: mark message as done")
}

// Withdrawn tells whether the sender of a message redacted it before it was answered.
func (in *Inbox) Withdrawn(ctx context.Context, id string) (bool, error) {
	gone, err := store.Value[bool](ctx, in.db, `SELECT state = 'redacted' FROM inbox WHERE id = ?`, id)
	return gone, store.Wrap(err, "delivery: look into the inbox")
}

// Origin returns who wrote a message and in which thread; both are empty when it is unknown.
func (in *Inbox) Origin(ctx context.Context, id string) (sender, thread string) {
	_ = in.db.QueryRowContext(ctx, `SELECT sender, thread FROM inbox WHERE id = ?`, id).Scan(&sender, &thread)
	return sender, thread
}

// Leave drops what was on its way in or out of a room that the bot is no longer in. Its questions
// count as redacted, because nobody could read the answers.
func (in *Inbox) Leave(ctx context.Context, room string) error {
	err := store.InTx(ctx, in.db, func(tx *sql.Tx) error {
		if err := redactRows(ctx, tx, `room = ?`, room); err != nil {
			return err
		}
		if err := in.heard.leave(ctx, tx, room); err != nil {
			return err
		}
		return in.out.leave(ctx, tx, room)
	})
	return store.Wrap(err, "delivery: clear inbox and outbox of a room")
}

// redactRows makes rows redacted that have no answer yet.
func redactRows(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	_, err := tx.ExecContext(ctx, `UPDATE inbox SET state = 'redacted', text = '', raw = '', brought = ''
		WHERE state IN ('new', 'utd', 'failed') AND `+where, args...)
	return err
}

// Busy tells whether messages of a room are on their way in or out.
func (in *Inbox) Busy(ctx context.Context, room string) (bool, error) {
	busy, err := store.Value[bool](ctx, in.db, `SELECT EXISTS (SELECT 1 FROM inbox WHERE room = ?1 AND state = 'new')
		OR EXISTS (SELECT 1 FROM outbox WHERE room = ?1 AND state IN ('draft', 'pending'))`, room)
	return busy, store.Wrap(err, "delivery: look into inbox and outbox")
}

// KeptFiles lists the kept files that messages on their way in or out need.
func (in *Inbox) KeptFiles(ctx context.Context) ([]string, error) {
	paths, err := store.Column[string](ctx, in.db, `SELECT path FROM (
			SELECT f.value ->> '$.path' AS path FROM inbox, json_each(nullif(brought, ''), '$.files') AS f WHERE state = 'new'
			UNION ALL SELECT file ->> '$.path' FROM outbox WHERE file <> '' AND state IN ('draft', 'pending'))
		WHERE path <> ''`)
	return paths, store.Wrap(err, "delivery: list files")
}
