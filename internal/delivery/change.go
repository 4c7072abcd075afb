package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// target is the inbox row of the event that a change refers to.
type target struct {
	id, room, sender, state   string
	change, target            string // set if the target is a change itself
	at                        int64
	known, unproven, redacted bool
}

func targetRow(ctx context.Context, tx *sql.Tx, event string) (target, error) {
	t := target{id: event}
	err := tx.QueryRowContext(ctx, `SELECT room, sender, state, change, target, sent_at, unverified, state = 'redacted' OR EXISTS (
		SELECT 1 FROM inbox AS b WHERE b.target = inbox.id AND b.target <> '' AND b.change = 'redacted') FROM inbox WHERE id = ?`, event).
		Scan(&t.room, &t.sender, &t.state, &t.change, &t.target, &t.at, &t.unproven, &t.redacted)
	t.known, err = store.Found(err)
	return t, err
}

// targetOf returns the message that a change to event refers to. An edit stands for the edited
// message.
func targetOf(ctx context.Context, tx *sql.Tx, event string) (target, error) {
	of, err := targetRow(ctx, tx, event)
	if err == nil && of.change == "edited" {
		return targetRow(ctx, tx, of.target)
	}
	return of, err
}

// edit stores an edit of the sender's own message. The newest edit in stream order counts. Unproven
// words never replace proven ones.
func (in *Inbox) edit(ctx context.Context, tx *sql.Tx, e chat.Edit, s Incoming) error {
	orig, err := targetOf(ctx, tx, e.Target)
	if err != nil {
		return err
	}
	switch {
	case !orig.known, orig.sender != e.Sender, orig.room != e.Room, orig.change != "", orig.redacted, e.Unproven && !orig.unproven:
		return nil
	}
	if again, err := isStored(ctx, tx, e.ID); err != nil || again {
		return err
	}
	e.Target, e.At = orig.id, time.UnixMilli(orig.at)
	switch {
	case orig.state == "utd" || orig.state == "failed" || orig.state == "dead": // the edit can be read, so it becomes the message
		if !s.Addressed {
			return nil
		}
		m := chat.Message{Head: e.Head, Text: e.Text, Files: s.Files}
		m.ID = orig.id
		if _, err := tx.ExecContext(ctx, `DELETE FROM inbox WHERE id = ?`, m.ID); err != nil {
			return err
		}
		return in.insert(ctx, tx, m, "new")
	case orig.state == "new":
		if _, err := tx.ExecContext(ctx, `UPDATE inbox SET text = ?1
			WHERE id = ?2 AND state = 'new' AND (?1 <> '' OR instr(attachments, '"files"') > 0)`, e.Text, e.Target); err != nil {
			return err
		}
	}
	return in.insert(ctx, tx, e, "new")
}

// redact withdraws an unanswered message and queues it for ForgetRedacted. Redactions by others
// than the bot are passed on to the session.
func (in *Inbox) redact(ctx context.Context, tx *sql.Tx, r chat.Redaction) error {
	if err := recordRedaction(ctx, tx, r.Target); err != nil {
		return err
	}
	if err := in.group.redact(ctx, tx, r.Target); err != nil {
		return err
	}
	if err := redactRows(ctx, tx, `id = ?`, r.Target); err != nil || r.ID == "" {
		return err
	}
	return in.redactTarget(ctx, tx, r)
}

// redactTarget stores a redaction by a person. Redacting an edit redacts the message, because its
// earlier text is not stored.
func (in *Inbox) redactTarget(ctx context.Context, tx *sql.Tx, r chat.Redaction) error {
	orig, err := targetOf(ctx, tx, r.Target)
	if err != nil {
		return err
	}
	r.Target = orig.id
	if err := recordRedaction(ctx, tx, r.Target); err != nil {
		return err
	}
	if orig.change != "" {
		return nil // redacting a reaction has no effect
	}
	if !orig.known {
		answer, err := in.out.recordRedaction(ctx, tx, r.Target)
		if err != nil || answer == "" {
			return err
		}
		r.Target = answer
	}
	if err := redactRows(ctx, tx, `target = ? AND target <> '' AND change = 'edited'`, r.Target); err != nil {
		return err
	}
	if err := redactRows(ctx, tx, `id = ?`, r.Target); err != nil {
		return err
	}
	return in.insert(ctx, tx, r, "new")
}

// react stores a reaction to the sender's own question or to its answer. An owner may react to any.
func (in *Inbox) react(ctx context.Context, tx *sql.Tx, r chat.Reaction, owner bool) error {
	orig, err := targetOf(ctx, tx, r.Target)
	if err != nil {
		return err
	}
	r.Target = orig.id
	asker, room := orig.sender, orig.room
	switch {
	case orig.change != "" || orig.redacted:
		return nil
	case !orig.known:
		answer, _, err := in.out.messageOf(ctx, tx, r.Target)
		if err != nil || answer == "" {
			return err
		}
		r.Target = answer
		err = tx.QueryRowContext(ctx, `SELECT o.room, coalesce(i.sender, '') FROM outbox AS o LEFT JOIN inbox AS i ON i.id = o.reply_to
			WHERE o.id = ?`, answer).Scan(&room, &asker)
		if err != nil {
			return err
		}
	}
	if room != r.Room || asker != r.Sender && !owner {
		return nil
	}
	return in.insert(ctx, tx, r, "new")
}

// vote stores a vote on an open poll of the bot in the same room. It stores the option's own id.
func (in *Inbox) vote(ctx context.Context, tx *sql.Tx, v chat.Vote) error {
	var message, txn, packed string
	err := tx.QueryRowContext(ctx, `SELECT id, txn, poll FROM outbox
		WHERE event_id = ? AND event_id <> '' AND room = ? AND poll <> '' AND closed = 0`, v.Target, v.Room).
		Scan(&message, &txn, &packed)
	if found, err := store.Found(err); !found {
		return err
	}
	var p Poll
	if err := json.Unmarshal([]byte(packed), &p); err != nil {
		return err
	}
	chosen := slices.IndexFunc(p.Options, func(o chat.Option) bool { return AnswerID(txn, o.ID) == v.Option })
	if chosen < 0 {
		return nil
	}
	v.Target, v.Option = message, p.Options[chosen].ID
	return in.insert(ctx, tx, v, "new")
}
