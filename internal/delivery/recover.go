package delivery

import (
	"context"
	"database/sql"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Recover stores rows that the bot has sent since the database was copied, oldest first, as a room
// shows them: of a draft the revision is 0. Those that are final become sent. The messages that they
// answer, by the row's id, become done. It may be repeated.
func (o *Outbox) Recover(ctx context.Context, rows []OutboxRow, answers map[string][]chat.Head) error {
	return store.InTx(ctx, o.db, func(tx *sql.Tx) error {
		for _, r := range rows {
			var err error
			if r.Revision == 0 {
				err = o.recoverDraft(ctx, tx, r)
			} else {
				err = o.recoverFinal(ctx, tx, r, answers[r.ID])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (o *Outbox) recoverFinal(ctx context.Context, tx *sql.Tx, r OutboxRow, answers []chat.Head) error {
	replyTo, now := "", o.now().UnixMilli()
	if len(answers) > 0 {
		replyTo = answers[0].ID
	}
	if err := store.Exec(ctx, tx, `INSERT INTO outbox (id, room, kind, reply_to, thread, file, state, revision, event_id, created_at)
		VALUES (?, ?, ?, ?, ?, ?, 'sent', ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id, revision = max(revision, excluded.revision),
			state = iif(state IN ('draft', 'pending') AND excluded.revision >= revision, 'sent', state)`,
		r.ID, r.Room, r.Kind, replyTo, r.Thread, r.File, r.Revision, r.EventID, now); err != nil {
		return err
	}
	if err := store.Exec(ctx, tx, `DELETE FROM pending_redaction WHERE event_id = ?`, r.EventID); err != nil { // it began as a draft
		return err
	}
	if err := o.recordThreadActivity(ctx, tx, r.ID, r.EventID); err != nil {
		return err
	}
	for _, a := range answers {
		if err := RecordAnswer(ctx, tx, a.ID, r.ID); err != nil {
			return err
		}
		if err := store.Exec(ctx, tx, `INSERT INTO inbox (id, room, sender, sent_at, received_at, state) VALUES (?, ?, ?, ?, ?, 'done')
			ON CONFLICT (id) DO UPDATE SET state = 'done', text = '', raw = '', attachments = ''
			WHERE state IN ('new', 'utd', 'failed')`, a.ID, r.Room, a.Sender, a.At.UnixMilli(), now); err != nil {
			return err
		}
	}
	return nil
}

// recoverDraft finds the event of a draft. A draft that the database does not know is redacted, unless its
// final text follows: its question is answered again, maybe together with later ones.
func (o *Outbox) recoverDraft(ctx context.Context, tx *sql.Tx, r OutboxRow) error {
	err := store.Exec(ctx, tx, `UPDATE outbox SET event_id = ?, drafted = 1 WHERE id = ? AND event_id = ''`, r.EventID, r.ID)
	if err != nil {
		return err
	}
	return store.Exec(ctx, tx, `INSERT OR IGNORE INTO pending_redaction (event_id, room, reason)
		SELECT ?, ?, 'why.not_needed' WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE id = ?)`, r.EventID, r.Room, r.ID)
}
