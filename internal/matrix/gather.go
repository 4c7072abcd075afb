package matrix

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"reverie/internal/session"
)

// quick is how soon after a line somebody's next one belongs to it, by the clock of their
// server: people who write in lines do not want a thread for each.
const quick = 10 * time.Second

// lookBack bounds how many messages of all rooms are looked through for somebody's last.
const lookBack = 2000

// gather finds the thread of a message that would begin one of its own: lines that follow
// each other belong into that of the first, and who asks for an answer once more gets it
// where the newest one stands.
func (q *queue) gather(ctx context.Context, tx *sql.Tx, m *session.Inbound) error {
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
