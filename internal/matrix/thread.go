package matrix

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/session"
	"reverie/internal/settings"
	"reverie/internal/text"
)

// activeThread is how long after our last word in a thread what allowed people write there
// needs no mention of us.
const activeThread = 24 * time.Hour

const (
	maxRoot   = 1500 // runes of a thread's root that are quoted
	rootTime  = 10 * time.Second
	longestID = 255 // bytes of an id, as the specification has it
)

// threadIn is the thread of a message's relation, by its root; what cannot be one is none.
func threadIn(rel *event.RelatesTo) string {
	root := rel.GetThreadParent().String()
	if len(root) > longestID || !strings.HasPrefix(root, "$") || strings.ContainsFunc(root, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return ""
	}
	return root
}

// branchOf is the thread that m is answered in, as the room has it set.
func (c *Client) branchOf(ctx context.Context, m chat.Inbound) (string, error) {
	setting, err := settings.Store{DB: c.q.db}.Get(ctx, m.Room, settings.Threads)
	return session.Branch(setting, m), err
}

// spokeIn notes that event is our message id, if that belongs into a thread.
func (q *queue) spokeIn(ctx context.Context, tx *sql.Tx, id, event string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO matrix_thread (room, root, newest, spoke_at) SELECT room, thread, ?1, ?2 FROM outbox WHERE id = ?3 AND thread <> ''
		ON CONFLICT DO UPDATE SET newest = excluded.newest, spoke_at = excluded.spoke_at`, event, q.now().UnixMilli(), id)
	return err
}

// activeIn reports whether we take part in a thread: we spoke there lately, or it is
// rooted at something that we said lately.
func (q *queue) activeIn(ctx context.Context, room, root string) (active bool, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM matrix_thread WHERE room = ?1 AND root = ?2 AND spoke_at > ?3)
		OR EXISTS (SELECT 1 FROM outbox WHERE room = ?1 AND event_id = ?2 AND created_at > ?3)`, room, root, q.now().Add(-activeThread).UnixMilli()).Scan(&active)
	return active, doing("matrix: look up a thread", err)
}

// inActiveThread reports whether a message is for us because of the thread it stands in.
// Who mentions somebody else there talks to them.
func (g *gate) inActiveThread(msg *event.MessageEventContent, active func(root string) bool) bool {
	root := threadIn(msg.RelatesTo)
	if root == "" || active == nil {
		return false
	}
	if msg.Mentions != nil && slices.ContainsFunc(msg.Mentions.UserIDs, func(u id.UserID) bool { return u.String() != g.self }) {
		return false
	}
	return active(root)
}

// relate puts content where it belongs: into its thread, where clients that know no threads
// show it as a reply to the question or to our newest message there, or below what it answers.
func (c *Client) relate(ctx context.Context, m *event.MessageEventContent, r outRow, private bool) error {
	switch {
	case r.thread != "":
		newest, err := value[string](ctx, c.q.db, `SELECT newest FROM matrix_thread WHERE room = ? AND root = ?`, r.room, r.thread)
		if err != nil {
			return fmt.Errorf("matrix: look up a thread: %w", err)
		}
		m.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(r.thread), id.EventID(cmp.Or(r.replyTo, newest, r.thread)))
	case r.replyTo != "" && (!private || c.q.askedThread(ctx, r.replyTo) != ""): // asked in a thread, and answered outside
		m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID(r.replyTo))
	}
	return nil
}

// askedThread is in which thread the inbound message id was written; empty when in none.
func (q *queue) askedThread(ctx context.Context, id string) string {
	thread, _ := value[string](ctx, q.db, `SELECT thread FROM inbox WHERE id = ?`, id) // unknown: in none
	return thread
}

// fetchRoot quotes the root of the thread that m begins for us. What cannot be read is said
// in its place: the model then knows that something is missing, and the person hears of it.
func (c *Client) fetchRoot(ctx context.Context, m *chat.Inbound) error {
	if m.Thread == "" {
		return nil
	}
	if m.Branch != "" { // else it is answered outside, where the thread is not known
		if begun, err := history.NewStore(c.q.db).Begun(ctx, history.TalkOf(m.Room, m.Branch)); err != nil || begun {
			return err
		}
	}
	l, err := c.link(ctx, m.Room, m.Thread)
	root := l.quote
	switch {
	case err != nil:
		root = chat.Quote{Text: "[it could not be read]"}
	case root.Text == "":
		root.Text = "[it was taken back, or has no words]"
	}
	root.ID, root.Why, root.Text = m.Thread, chat.QuoteThread, text.Clip(root.Text, maxRoot)
	m.Quotes = append([]chat.Quote{root}, m.Quotes...)
	return err
}

// branchOfTarget is the thread in which that is answered which a change is done to: a
// message, or an answer of ours by its name.
func branchOfTarget(ctx context.Context, tx *sql.Tx, target string) (branch string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce((SELECT branch FROM inbox WHERE id = ?1),
		(SELECT coalesce(i.branch, o.thread) FROM outbox AS o LEFT JOIN inbox AS i ON i.id = o.reply_to WHERE o.id = ?1), '')`, target).Scan(&branch)
	return branch, err
}

// quick is how soon after a line somebody's next one belongs to it, by the clock of their
// server: people who write in lines do not want a thread for each.
const quick = 10 * time.Second

// lookBack bounds how many messages of all rooms are looked through for somebody's last.
const lookBack = 2000

// gather finds the thread of a message that would begin one of its own: lines that follow
// each other belong into that of the first, and who asks for an answer once more gets it
// where the newest one stands.
func (q *queue) gather(ctx context.Context, tx *sql.Tx, m *chat.Inbound) error {
	if m.Branch == "" || m.Branch != m.ID {
		return nil
	}
	const past = ` FROM inbox WHERE seq > (SELECT max(seq) FROM inbox) - ? AND room = ? AND sender = ? AND change = '' AND state IN ('new', 'done') `
	var branch, thread string
	var at int64
	var err error
	if session.Retries(m.Text) {
		err = tx.QueryRowContext(ctx, `SELECT branch`+past+`AND (state = 'new' OR EXISTS (SELECT 1 FROM answered WHERE question = inbox.id)) ORDER BY seq DESC LIMIT 1`,
			lookBack, m.Room, m.Sender).Scan(&branch)
		m.Branch = branch
	} else {
		err = tx.QueryRowContext(ctx, `SELECT branch, thread, sent_at`+past+`ORDER BY seq DESC LIMIT 1`, lookBack, m.Room, m.Sender).Scan(&branch, &thread, &at)
		if since := m.At.Sub(time.UnixMilli(at)); err == nil && branch != "" && thread == "" && since >= 0 && since <= quick {
			m.Branch = branch
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err
}
