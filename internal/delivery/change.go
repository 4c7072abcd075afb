package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"reverie/internal/chat"
)

// target is what the inbox says of an event that a change is done to.
type target struct {
	room, sender, state, target string
	change                      chat.Change
	at                          int64
	unproven, redacted          bool
}

func targetRow(ctx context.Context, tx *sql.Tx, event string) (t target, known bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT room, sender, state, change, target, sent_at, unproven, state = 'redacted' OR EXISTS (
		SELECT 1 FROM inbox AS b WHERE b.target = inbox.id AND b.change = 'taken back') FROM inbox WHERE id = ?`, event).
		Scan(&t.room, &t.sender, &t.state, &t.change, &t.target, &t.at, &t.unproven, &t.redacted)
	if errors.Is(err, sql.ErrNoRows) {
		return t, false, nil
	}
	return t, err == nil, err
}

// targetOf is the message that ch is done to: an edit stands for what it edits.
func targetOf(ctx context.Context, tx *sql.Tx, ch *Incoming) (of target, known bool, err error) {
	of, known, err = targetRow(ctx, tx, ch.Target)
	if err == nil && known && of.change == chat.Edited {
		ch.Target = of.target
		of, known, err = targetRow(ctx, tx, ch.Target)
	}
	return of, known, err
}

// change stores ch if it is worth anything: it waits in the inbox until the session has
// dealt with what it is done to.
func (in *Inbox) change(ctx context.Context, tx *sql.Tx, ch Incoming) error {
	switch ch.Change {
	case chat.Edited:
		return in.edit(ctx, tx, ch)
	case chat.TakenBack:
		return in.redactTarget(ctx, tx, ch)
	case chat.Voted:
		return in.vote(ctx, tx, ch)
	}
	return in.react(ctx, tx, ch)
}

// edit stores an edit of somebody's own message: the newest one counts, in the order of
// the stream. Words that somebody is proven to have written are not replaced by others.
func (in *Inbox) edit(ctx context.Context, tx *sql.Tx, ch Incoming) error {
	of, known, err := targetOf(ctx, tx, &ch)
	if err != nil {
		return err
	}
	switch {
	case !known, of.sender != ch.Sender, of.room != ch.Room, of.change != "", of.redacted, ch.Unproven && !of.unproven:
		return nil
	}
	if again, err := taken(ctx, tx, ch.ID); err != nil || again {
		return err
	}
	switch {
	case of.state == "utd" || of.state == "failed" || of.state == "dead": // these are its words now, and they can be read
		if !ch.Addressed {
			return nil
		}
		m := ch.Inbound
		m.ID, m.At, m.Change, m.Target = ch.Target, time.UnixMilli(of.at), "", ""
		if _, err := tx.ExecContext(ctx, `DELETE FROM inbox WHERE id = ?`, m.ID); err != nil {
			return err
		}
		return in.put(ctx, tx, m, "new")
	case of.state == "new":
		if _, err := tx.ExecContext(ctx, `UPDATE inbox SET text = ?1
			WHERE id = ?2 AND state = 'new' AND (?1 <> '' OR instr(brought, '"files"') > 0)`, ch.Text, ch.Target); err != nil {
			return err
		}
	}
	ch.At, ch.Files = time.UnixMilli(of.at), nil
	return in.put(ctx, tx, ch.Inbound, "new")
}

// redact withdraws a message that has no answer yet, and notes that what became of one that has is
// to be forgotten.
func (in *Inbox) redact(ctx context.Context, tx *sql.Tx, event string) error {
	if err := toForget(ctx, tx, event); err != nil {
		return err
	}
	if err := in.heard.redact(ctx, tx, event); err != nil {
		return err
	}
	return redactRows(ctx, tx, `id = ?`, event)
}

// redactTarget stores that a message of somebody, or of the bot, was redacted. An edit that is
// redacted takes its message with it: nobody knows any more what that said before.
func (in *Inbox) redactTarget(ctx context.Context, tx *sql.Tx, ch Incoming) error {
	of, known, err := targetOf(ctx, tx, &ch)
	if err != nil {
		return err
	}
	if err := toForget(ctx, tx, ch.Target); err != nil {
		return err
	}
	if known && of.change != "" {
		return nil // a reaction: what it did is done
	}
	if !known {
		answer, err := in.out.redacted(ctx, tx, ch.Target)
		if err != nil || answer == "" {
			return err
		}
		ch.Target = answer
	}
	if err := redactRows(ctx, tx, `target = ? AND change = 'edited'`, ch.Target); err != nil {
		return err
	}
	if err := redactRows(ctx, tx, `id = ?`, ch.Target); err != nil {
		return err
	}
	return in.put(ctx, tx, ch.Inbound, "new")
}

// react stores a reaction to what its sender has asked, or to the answer to that. An owner may
// react to anybody's.
func (in *Inbox) react(ctx context.Context, tx *sql.Tx, ch Incoming) error {
	of, known, err := targetOf(ctx, tx, &ch)
	if err != nil {
		return err
	}
	asker, room := of.sender, of.room
	switch {
	case known && (of.change != "" || of.redacted):
		return nil
	case !known:
		answer, _, err := in.out.messageOf(ctx, tx, ch.Target)
		if err != nil || answer == "" {
			return err
		}
		ch.Target = answer
		err = tx.QueryRowContext(ctx, `SELECT o.room, coalesce(i.sender, '') FROM outbox AS o LEFT JOIN inbox AS i ON i.id = o.reply_to
			WHERE o.id = ?`, answer).Scan(&room, &asker)
		if err != nil {
			return err
		}
	}
	if room != ch.Room || asker != ch.Sender && !ch.Addressed {
		return nil
	}
	return in.put(ctx, tx, ch.Inbound, "new")
}

// vote stores a vote on an open poll of the bot in the same room, under the option's own id.
func (in *Inbox) vote(ctx context.Context, tx *sql.Tx, ch Incoming) error {
	var message, packed string
	err := tx.QueryRowContext(ctx, `SELECT id, poll FROM outbox
		WHERE event_id = ? AND event_id <> '' AND room = ? AND poll <> '' AND closed = 0`, ch.Target, ch.Room).
		Scan(&message, &packed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	var p Poll
	if err == nil {
		err = json.Unmarshal([]byte(packed), &p)
	}
	if err != nil {
		return err
	}
	chosen := slices.IndexFunc(p.Options, func(o chat.Option) bool { return AnswerID(message, o.ID) == ch.Text })
	if chosen < 0 {
		return nil
	}
	ch.Target, ch.Text = message, p.Options[chosen].ID
	return in.put(ctx, tx, ch.Inbound, "new")
}
