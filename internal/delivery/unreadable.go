package delivery

import (
	"context"
	"database/sql"
	"time"

	"reverie/internal/store"
)

// Unreadable is an event that could not be decrypted (utd) or handled (failed). It waits in the
// inbox as it was received, because its key may be days late.
type Unreadable struct {
	ID, Room, Sender string
	SentAt           time.Time
	Raw              string
	Session          string // the Megolm session whose key is missing; empty = another error
	Tries            int
	Wait             time.Duration // until the next attempt
	ReceivedAt       time.Time
	Err              error
}

// state returns the state of its row.
func (u Unreadable) state() string {
	if u.Session == "" {
		return "failed"
	}
	return "utd"
}

func (in *Inbox) putUnreadable(ctx context.Context, tx *sql.Tx, u Unreadable) error {
	now := in.now()
	return store.Exec(ctx, tx, `INSERT OR IGNORE INTO inbox
			(id, room, sender, sent_at, received_at, state, raw, megolm, tries, next_at, error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		u.ID, u.Room, u.Sender, u.SentAt.UnixMilli(), now.UnixMilli(), u.state(), u.Raw, u.Session, u.Tries,
		now.Add(u.Wait).UnixMilli(), u.Err.Error())
}

// KeyArrived makes events due that wait for the key of a session; with an empty session, all
// waiting events.
func (in *Inbox) KeyArrived(ctx context.Context, session string) error {
	return store.Exec(ctx, in.db, `UPDATE inbox SET next_at = 1 WHERE state IN ('utd', 'failed') AND (megolm = ?1 OR ?1 = '')`, session)
}

// WaitsBefore reports whether an earlier event of the room waits for the key of u.
func (in *Inbox) WaitsBefore(ctx context.Context, u Unreadable) (bool, error) {
	return store.Value[bool](ctx, in.db, `SELECT EXISTS (SELECT 1 FROM inbox WHERE room = ?1 AND megolm = ?2 AND state = 'utd'
		AND seq < (SELECT seq FROM inbox WHERE id = ?3))`, u.Room, u.Session, u.ID)
}

// DueReads returns the events to read now. If nothing is due, next is when the next one is due, at
// most an hour from now.
func (in *Inbox) DueReads(ctx context.Context) (due []Unreadable, next time.Time, err error) {
	due, err = store.List(ctx, in.db, func(r store.Row) (u Unreadable, err error) {
		var sent, received int64
		err = r.Scan(&u.ID, &u.Room, &u.Sender, &sent, &received, &u.Raw, &u.Session, &u.Tries)
		u.SentAt, u.ReceivedAt = time.UnixMilli(sent), time.UnixMilli(received)
		return u, err
	}, `SELECT id, room, sender, sent_at, received_at, raw, megolm, tries FROM inbox
		WHERE state IN ('utd', 'failed') AND next_at > 0 AND next_at <= ? ORDER BY seq LIMIT 100`, in.now().UnixMilli())
	if err != nil || len(due) > 0 {
		return due, next, err
	}
	at, err := store.Value[int64](ctx, in.db, `SELECT coalesce(min(next_at), ?1) FROM inbox
		WHERE state IN ('utd', 'failed') AND next_at BETWEEN 1 AND ?1`, in.now().Add(time.Hour).UnixMilli())
	return nil, time.UnixMilli(at), err
}

// RetryRead records a failed attempt to read an event. It stores the time of the next attempt, and
// notices for the event's room. The zero time waits for the key.
func (in *Inbox) RetryRead(ctx context.Context, u Unreadable, at time.Time, told ...Notice) error {
	next := int64(0)
	if !at.IsZero() {
		next = at.UnixMilli()
	}
	return in.updateUnreadable(ctx, told,
		`UPDATE inbox SET state = ?, megolm = ?, tries = ?, next_at = ?, error = ? WHERE id = ? AND state IN ('utd', 'failed')`,
		u.state(), u.Session, u.Tries, next, u.Err.Error(), u.ID)
}

// GiveUp ends the attempts to read an event.
func (in *Inbox) GiveUp(ctx context.Context, u Unreadable, told Notice) error {
	return in.updateUnreadable(ctx, []Notice{told},
		`UPDATE inbox SET state = 'dead', tries = ?, next_at = 0, error = ? WHERE id = ? AND state IN ('utd', 'failed')`,
		u.Tries, u.Err.Error(), u.ID)
}

func (in *Inbox) updateUnreadable(ctx context.Context, told []Notice, query string, args ...any) error {
	return store.InTx(ctx, in.db, func(tx *sql.Tx) error {
		for _, n := range told {
			if err := in.out.Notify(ctx, tx, n); err != nil {
				return err
			}
		}
		return store.Exec(ctx, tx, query, args...)
	})
}
