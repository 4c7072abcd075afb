package delivery

import (
	"context"
	"database/sql"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// threadActiveFor is a time after the bot's last message in a thread. During it people need not
// mention the bot there.
const threadActiveFor = 24 * time.Hour

// threadExpr is the thread of a message of the bot: the named one (the first parameter), else the
// one in which the message it replies to (the second) is answered.
const threadExpr = `coalesce(nullif(?, ''), (SELECT answer_thread FROM inbox WHERE id = ?), '')`

// recordThreadActivity records that event carries the message id, if that is in a thread.
func (o *Outbox) recordThreadActivity(ctx context.Context, tx *sql.Tx, id, event string) error {
	return store.Exec(ctx, tx, `INSERT INTO matrix_thread (room, root, newest, spoke_at)
			SELECT room, thread, ?1, ?2 FROM outbox WHERE id = ?3 AND thread <> ''
		ON CONFLICT DO UPDATE SET newest = excluded.newest, spoke_at = excluded.spoke_at`, event, o.now().UnixMilli(), id)
}

// ActiveInThread reports whether the bot takes part in a thread: it has recently written there, or
// a recent message of it is the root.
func (o *Outbox) ActiveInThread(ctx context.Context, room, root string) (bool, error) {
	return store.Value[bool](ctx, o.db, `SELECT EXISTS (SELECT 1 FROM matrix_thread WHERE room = ?1 AND root = ?2 AND spoke_at > ?3)
		OR EXISTS (SELECT 1 FROM outbox WHERE room = ?1 AND event_id = ?2 AND event_id <> '' AND created_at > ?3)`,
		room, root, o.now().Add(-threadActiveFor).UnixMilli())
}

// NewestInThread returns the newest known event of a thread; empty = unknown.
func (o *Outbox) NewestInThread(ctx context.Context, room, root string) (string, error) {
	return store.Value[string](ctx, o.db, `SELECT newest FROM matrix_thread WHERE room = ? AND root = ?`, room, root)
}

// threadOfTarget returns the thread in which target is answered: a message, or an answer by its id.
func threadOfTarget(ctx context.Context, tx *sql.Tx, target string) (string, error) {
	return store.Value[string](ctx, tx, `SELECT coalesce((SELECT answer_thread FROM inbox WHERE id = ?1),
		(SELECT coalesce(i.answer_thread, o.thread) FROM outbox AS o LEFT JOIN inbox AS i ON i.id = o.reply_to
			WHERE o.id = ?1), '')`, target)
}

// burstInterval is the maximum time between messages of one person that are answered together. So a
// burst of lines does not start several threads. It compares the sender's server times.
const burstInterval = 10 * time.Second

// maxLookBack is how many messages of all rooms are searched for a person's previous one.
const maxLookBack = 2000

// joinRecentThread sets the thread of a message that would start its own. Messages of a burst join
// the thread of the first, and a request for another answer joins the thread of the newest answer.
func (in *Inbox) joinRecentThread(ctx context.Context, tx *sql.Tx, m *chat.Message) error {
	if m.Branch == "" || m.Branch != m.ID {
		return nil
	}
	const past = ` FROM inbox WHERE seq > (SELECT max(seq) FROM inbox) - ? AND room = ? AND sender = ?
		AND change = '' AND state IN ('new', 'done') `
	var branch, thread string
	var at int64
	var err error
	if in.isRetry(m.Text) {
		err = tx.QueryRowContext(ctx, `SELECT answer_thread`+past+`AND (state = 'new'
			OR EXISTS (SELECT 1 FROM question_reply WHERE question = inbox.id))
			ORDER BY seq DESC LIMIT 1`, maxLookBack, m.Room, m.Sender).Scan(&branch)
		m.Branch = branch
	} else {
		err = tx.QueryRowContext(ctx, `SELECT answer_thread, thread, sent_at`+past+`
			ORDER BY seq DESC LIMIT 1`, maxLookBack, m.Room, m.Sender).
			Scan(&branch, &thread, &at)
		if since := m.At.Sub(time.UnixMilli(at)); err == nil && branch != "" && thread == "" && since >= 0 && since <= burstInterval {
			m.Branch = branch
		}
	}
	_, err = store.Found(err)
	return err
}
