package delivery

import (
	"context"
	"database/sql"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Batch is what one sync brought, to be stored in one transaction with the token, or what came of
// one event that could not be read before.
type Batch struct {
	Read       string     // the event that could not be read before; empty = it is a sync
	In         []Incoming // in the order of the stream
	Unreadable []Unreadable
	Echoes     []Echo
	Notices    []Notice
}

// Incoming is one thing that people said or did: a message for the bot, a change to an earlier
// one, a line that is not for the bot, or a redaction.
type Incoming struct {
	Event       chat.Inbound // a message or a change; of a redaction by the bot itself only the target; nil = a line
	Past        bool         // of a message: it gets no answer
	WithContext bool         // of a message: it takes along what was heard before
	Addressed   bool         // of an edit: its words speak to the bot; of a reaction: an owner did it
	Files       []chat.File  // of an edit: what its message has if it could not be read before
	Line        *Line        // a line, or an edit of one
}

// Asks is the message, if it is one that wants an answer.
func (s Incoming) NeedsAnswer() (m chat.Message, asks bool) {
	m, asks = s.Event.(chat.Message)
	return m, asks && !s.Past
}

// Commit stores all that a batch brought, and what with stores, in one transaction. with may be nil.
func (in *Inbox) Commit(ctx context.Context, b *Batch, with func(*sql.Tx) error) error {
	err := store.InTx(ctx, in.db, func(tx *sql.Tx) error {
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
		if b.Read != "" { // not among what is stored: it is read, and needs no answer
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
	return store.Wrap(err, "delivery: store sync")
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
