package delivery

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"reverie/internal/store"
)

// replyPrefix begins the ids of replies; the id of the question follows.
const replyPrefix = "re:"

// ReplyID returns the id of the reply to a question. It is stable: sending a reply twice shows it once.
func ReplyID(question string) string { return replyPrefix + question }

// Answers lists the messages that the message id answers when its final text is sent.
func Answers(ctx context.Context, db store.DBTX, id string) ([]string, error) {
	question, ok := strings.CutPrefix(id, replyPrefix)
	if !ok {
		return nil, nil
	}
	also, err := QuestionsOf(ctx, db, id)
	return append([]string{question}, also...), err
}

// Carried is what an event of the bot carries, as a room shows it.
type Carried struct {
	ID, Room, Event string // the message, its room, and the event that shows it
	Thread          string
	Revision        int // of its final text; 0 = a draft
	Notice, File    bool
	At              time.Time
	Answers         []Answered // what it answers if it is final
}

// Answered is a message that was answered. Sender and At are empty if they are unknown.
type Answered struct {
	ID, Sender string
	At         time.Time
}

// Recover stores what the bot has sent since the database was copied, oldest first. Its rows
// become sent, and the messages that it answers done. It may be repeated.
func (o *Outbox) Recover(ctx context.Context, all []Carried) error {
	return store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		for _, c := range all {
			if err := o.recover(ctx, tx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (o *Outbox) recover(ctx context.Context, tx *sql.Tx, c Carried) error {
	if c.Revision == 0 {
		return o.recoverDraft(ctx, tx, c)
	}
	kind, file, question := "text", "", ""
	if c.Notice {
		kind = "notice"
	}
	if c.File {
		file = "{}" // so that it is not taken for a text
	}
	if len(c.Answers) > 0 {
		question = c.Answers[0].ID
	}
	err := store.Exec(ctx, tx, `INSERT INTO outbox (id, room, kind, reply_to, thread, file, state, revision, event_id, created_at)
		VALUES (?, ?, ?, ?, ?, ?, 'sent', ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id, revision = max(revision, excluded.revision),
			state = iif(state IN ('draft', 'pending') AND excluded.revision >= revision, 'sent', state)`,
		c.ID, c.Room, kind, question, c.Thread, file, c.Revision, c.Event, c.At.UnixMilli())
	if err != nil {
		return err
	}
	if err := store.Exec(ctx, tx, `DELETE FROM pending_redaction WHERE event_id = ?`, c.Event); err != nil { // it began as a draft
		return err
	}
	if err := o.recordThreadActivity(ctx, tx, c.ID, c.Event); err != nil {
		return err
	}
	for _, a := range c.Answers {
		if err := RecordAnswer(ctx, tx, a.ID, c.ID); err != nil {
			return err
		}
		if err := store.Exec(ctx, tx, `INSERT INTO inbox (id, room, sender, sent_at, received_at, state) VALUES (?, ?, ?, ?, ?, 'done')
			ON CONFLICT (id) DO UPDATE SET state = 'done', text = '', raw = '', attachments = ''
			WHERE state IN ('new', 'utd', 'failed')`, a.ID, c.Room, a.Sender, a.At.UnixMilli(), o.now().UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

// recoverDraft finds the event of a draft. A draft that the database does not know is redacted, unless its
// final text follows: its question is answered anew, maybe together with later ones.
func (o *Outbox) recoverDraft(ctx context.Context, tx *sql.Tx, c Carried) error {
	if err := store.Exec(ctx, tx, `UPDATE outbox SET event_id = ?, drafted = 1 WHERE id = ? AND event_id = ''`, c.Event, c.ID); err != nil {
		return err
	}
	return store.Exec(ctx, tx, `INSERT OR IGNORE INTO pending_redaction (event_id, room, reason)
		SELECT ?, ?, 'why.not_needed' WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE id = ?)`, c.Event, c.Room, c.ID)
}

// IsHandled reports whether the message or event id needs no more work: it was answered, or withdrawn.
func IsHandled(ctx context.Context, db store.DBTX, id string) (bool, error) {
	return store.Value[bool](ctx, db, `SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ? AND state IN ('done', 'dead', 'redacted'))`, id)
}
