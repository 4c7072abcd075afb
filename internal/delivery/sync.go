package delivery

import (
	"context"
	"database/sql"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Batch holds the events of one sync. They are stored in one transaction with the token. It may
// also hold the result of reading one event that was unreadable before.
type Batch struct {
	Read       string     // the event that was unreadable before; empty = a sync
	In         []Incoming // in stream order
	Unreadable []Unreadable
	Echoes     []Echo
	Notices    []Notice
}

// Incoming is one event of a person: a message to the bot, a change to an earlier one, a line of
// group context, or a redaction.
type Incoming struct {
	Event       chat.Inbound // a message or a change; a redaction by the bot itself has only a target; nil = see Line
	Past        bool         // a message that gets no answer
	WithContext bool         // a message that takes the group context along
	Addressed   bool         // an edit addressed to the bot, or a reaction by an owner
	Files       []chat.File  // the files of an edited message that was unreadable before
	Line        *Line        // a line of group context, or an edit of one
}

// NeedsAnswer returns the message if it needs an answer.
func (s Incoming) NeedsAnswer() (m chat.Message, asks bool) {
	m, asks = s.Event.(chat.Message)
	return m, asks && !s.Past
}

// Commit stores a batch and the changes of with in one transaction. with may be nil.
func (in *Inbox) Commit(ctx context.Context, b *Batch, with func(*sql.Tx) error) error {
	return store.InTx(ctx, in.db, func(tx *sql.Tx) error {
		for _, e := range b.Echoes {
			if err := in.out.recordEcho(ctx, tx, e); err != nil {
				return err
			}
		}
		for _, u := range b.Unreadable {
			if err := in.putUnreadable(ctx, tx, u); err != nil {
				return err
			}
		}
		for _, s := range b.In {
			if err := in.store(ctx, tx, s); err != nil {
				return err
			}
		}
		for _, n := range b.Notices {
			if err := in.out.Notify(ctx, tx, n); err != nil {
				return err
			}
		}
		if b.Read != "" { // still unreadable rows: the event was read, but needs no answer
			if _, err := tx.ExecContext(ctx, `UPDATE inbox SET state = 'done', raw = '', error = ''
				WHERE id = ? AND state IN ('utd', 'failed')`, b.Read); err != nil {
				return err
			}
		}
		if with == nil {
			return nil
		}
		return with(tx)
	})
}

func (in *Inbox) store(ctx context.Context, tx *sql.Tx, s Incoming) error {
	switch said := s.Event.(type) {
	case chat.Message:
		return in.message(ctx, tx, said, s)
	case chat.Edit:
		return in.edit(ctx, tx, said, s)
	case chat.Redaction:
		return in.redact(ctx, tx, said)
	case chat.Reaction:
		return in.react(ctx, tx, said, s.Addressed)
	case chat.Vote:
		return in.vote(ctx, tx, said)
	}
	return in.group.store(ctx, tx, s.Line)
}

func (in *Inbox) message(ctx context.Context, tx *sql.Tx, m chat.Message, s Incoming) error {
	if s.Past {
		m.Text, m.Quotes, m.Files = "", nil, nil
		return in.insert(ctx, tx, m, "done")
	}
	if s.WithContext {
		if known, err := isStored(ctx, tx, m.ID); err != nil || known {
			return err
		}
		if err := in.group.attach(ctx, tx, &m); err != nil {
			return err
		}
	}
	return in.insert(ctx, tx, m, "new")
}
