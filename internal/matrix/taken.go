package matrix

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// position is where the last sync ended.
type position struct {
	token string
	at    time.Time // when it was stored, by our clock; zero = never
}

// position returns where the last sync of this device ended.
func (q *queue) position(ctx context.Context, user, device string) (p position, err error) {
	var at int64
	err = q.db.QueryRowContext(ctx, `SELECT next_batch, at FROM matrix_sync WHERE user = ? AND device = ?`, user, device).Scan(&p.token, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return position{}, nil
	}
	if err != nil {
		return position{}, fmt.Errorf("matrix: read sync token: %w", err)
	}
	p.at = time.UnixMilli(at)
	return p, nil
}

// take stores all that a sync brought, together with the token that asks for
// the next one: either all of it is there or nothing.
func (q *queue) take(ctx context.Context, user, device, next string, b *batch) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		for _, e := range b.echoes {
			if err := q.echoed(ctx, tx, e); err != nil {
				return err
			}
		}
		for _, u := range b.unread {
			if err := q.putUnread(ctx, tx, u); err != nil {
				return err
			}
		}
		if err := q.store(ctx, tx, b); err != nil {
			return err
		}
		for room, event := range b.last {
			if _, err := tx.ExecContext(ctx, `INSERT INTO matrix_room (id, last_event) VALUES (?, ?)
				ON CONFLICT (id) DO UPDATE SET last_event = excluded.last_event`, room, event); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO matrix_sync (user, device, next_batch, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user, device) DO UPDATE SET next_batch = excluded.next_batch, at = excluded.at, failures = 0, problem = ''`,
			user, device, next, q.now().UnixMilli())
		return err
	})
	return doing("matrix: store sync", err)
}

// syncFailed notes for others who look that a sync failed. Before the first
// sync there is nowhere to note it.
func (q *queue) syncFailed(ctx context.Context, user, device string, failures int64, why error) error {
	_, err := q.db.ExecContext(ctx, `UPDATE matrix_sync SET failures = ?, problem = ? WHERE user = ? AND device = ?`, failures, why.Error(), user, device)
	return doing("matrix: note that a sync failed", err)
}

// read stores what came of an event that could not be read before.
func (q *queue) read(ctx context.Context, id string, b *batch) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		if err := q.store(ctx, tx, b); err != nil {
			return err
		}
		// Not among them: it is read, and needs no answer.
		_, err := tx.ExecContext(ctx, `UPDATE inbox SET state = 'done', raw = '', error = '' WHERE id = ? AND state IN ('utd', 'failed')`, id)
		return err
	})
	return doing("matrix: store message", err)
}

// store stores what was said in a batch and what follows from it.
func (q *queue) store(ctx context.Context, tx *sql.Tx, b *batch) error {
	for _, s := range b.in {
		if err := q.storeOne(ctx, tx, s); err != nil {
			return err
		}
	}
	for _, n := range b.notices {
		if err := q.once(ctx, tx, n); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) storeOne(ctx context.Context, tx *sql.Tx, s incoming) error {
	if s.redacted != "" {
		if err := q.redact(ctx, tx, s.redacted); err != nil {
			return err
		}
	}
	switch {
	case s.heard != nil:
		return q.hear(ctx, tx, s.heard)
	case s.Change != "":
		return q.change(ctx, tx, s)
	case s.past:
		s.Text, s.Quotes, s.Files = "", nil, nil
		return q.put(ctx, tx, s.Inbound, "done")
	case s.ID == "":
		return nil // a redaction of ours
	case s.listens:
		if err := q.give(ctx, tx, &s.Inbound); err != nil {
			return err
		}
	}
	return q.put(ctx, tx, s.Inbound, "new")
}

// put takes a message in, once. One that waited to be read until now is put at
// the end: others have been delivered since.
func (q *queue) put(ctx context.Context, tx *sql.Tx, m chat.Inbound, state string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM inbox WHERE id = ? AND state IN ('utd', 'failed')`, m.ID); err != nil {
		return err
	}
	with, err := pack(m)
	if err != nil {
		return err
	}
	if m.Change != "" {
		if m.Branch, err = branchOfTarget(ctx, tx, m.Target); err != nil {
			return err
		}
	}
	if m.Change == "" && state == "new" {
		if err := q.gather(ctx, tx, &m); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT OR IGNORE INTO inbox (id, room, sender, sender_name, text, private, unproven, sent_at, received_at,
			state, thread, branch, reply_to, brought, incomplete, change, target)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, m.Room, m.Sender, m.SenderName, m.Text, m.Private, m.Unproven, m.At.UnixMilli(), q.now().UnixMilli(), state,
		m.Thread, m.Branch, m.ReplyTo, with, state == "new" && m.Change == "" && incomplete(m), m.Change, m.Target)
	return err
}

// brought is what a message has besides its text.
type brought struct {
	Quotes []chat.Quote `json:"quotes,omitempty"`
	Files  []chat.File  `json:"files,omitempty"`
}

func pack(m chat.Inbound) (string, error) {
	if len(m.Quotes)+len(m.Files) == 0 {
		return "", nil
	}
	b, err := json.Marshal(brought{m.Quotes, m.Files})
	return string(b), err
}

// unpack gives m what pack made of it.
func unpack(m *chat.Inbound, packed string) error {
	if packed == "" {
		return nil
	}
	var b brought
	if err := json.Unmarshal([]byte(packed), &b); err != nil {
		return fmt.Errorf("matrix: read what came with %s: %w", m.ID, err)
	}
	m.Quotes, m.Files = b.Quotes, b.Files
	return nil
}

func (q *queue) putUnread(ctx context.Context, tx *sql.Tx, u unread) error {
	state := "utd"
	if u.session == "" {
		state = "failed"
	}
	now := q.now()
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO inbox (id, room, sender, sent_at, received_at, state, raw, megolm, tries, next_at, error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		u.id, u.room, u.sender, u.sentAt.UnixMilli(), now.UnixMilli(), state, u.raw, u.session.String(), u.tries, now.Add(u.wait).UnixMilli(), u.err.Error())
	return err
}

// redact takes a message back that has no answer yet, and notes that what became
// of one that has is to be forgotten.
func (q *queue) redact(ctx context.Context, tx *sql.Tx, event string) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO redaction (event) VALUES (?) ON CONFLICT DO NOTHING`, event); err != nil {
		return err
	}
	if err := q.unhear(ctx, tx, event); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE inbox SET state = 'redacted', text = '', raw = '', brought = '' WHERE id = ? AND state IN ('new', 'utd', 'failed')`, event)
	return err
}

// inRow is a message that passed the gate.
type inRow struct {
	seq        int64
	incomplete bool
	chat.Inbound
}

// waiting returns messages that still need an answer: the oldest of each room,
// at most so many, in the order they came. A room that takes the place of
// another one waits until it has what belongs to that.
func (q *queue) waiting(ctx context.Context, perRoom int) ([]inRow, error) {
	out, err := store.List(ctx, q.db, func(row store.Row) (r inRow, err error) {
		var at int64
		var with string
		if err := row.Scan(&r.seq, &r.ID, &r.Room, &r.Sender, &r.SenderName, &r.Text, &r.Private, &r.Unproven, &at, &r.Thread,
			&r.Branch, &r.ReplyTo, &with, &r.incomplete, &r.Change, &r.Target); err != nil {
			return r, err
		}
		err = unpack(&r.Inbound, with)
		r.At = time.UnixMilli(at)
		return r, err
	}, `SELECT seq, id, room, sender, sender_name, text, private, unproven, sent_at, thread, branch,
			reply_to, brought, incomplete, change, target
		FROM (SELECT *, row_number() OVER (PARTITION BY room ORDER BY seq) AS place FROM inbox WHERE state = 'new'
			AND room NOT IN (SELECT id FROM matrix_room WHERE replaces <> '' AND moved = 0))
		WHERE place <= ? ORDER BY seq`, perRoom)
	return out, doing("matrix: read inbox", err)
}

// handled marks a message as done and drops its text: the session's history
// has it now, and here only the id is needed.
func handled(ctx context.Context, db store.DBTX, id string) error {
	_, err := db.ExecContext(ctx, `UPDATE inbox SET state = 'done', text = '', brought = '' WHERE id = ? AND state = 'new'`, id)
	return doing("matrix: mark message as done", err)
}

// asker is who wrote the inbound message id; empty when unknown.
func (q *queue) asker(ctx context.Context, id string) string {
	sender, _ := value[string](ctx, q.db, `SELECT sender FROM inbox WHERE id = ?`, id) // unknown: nobody is mentioned
	return sender
}

// lastEvents is the newest event that was seen of each room that we are in.
func (q *queue) lastEvents(ctx context.Context) (map[id.RoomID]id.EventID, error) {
	last := map[id.RoomID]id.EventID{}
	err := store.Each(ctx, q.db, func(row store.Row) error {
		var room id.RoomID
		var evt id.EventID
		err := row.Scan(&room, &evt)
		last[room] = evt
		return err
	}, `SELECT id, last_event FROM matrix_room WHERE membership = 'joined' AND last_event <> ''`)
	return last, doing("matrix: look up the newest events", err)
}

// readSoon makes the events due that wait for a key; all that wait when session
// is empty.
func (q *queue) readSoon(ctx context.Context, session id.SessionID) error {
	_, err := q.db.ExecContext(ctx, `UPDATE inbox SET next_at = 1 WHERE state IN ('utd', 'failed') AND (megolm = ?1 OR ?1 = '')`, session.String())
	return doing("matrix: wake messages", err)
}

// waitsBefore tells whether an earlier event of the room waits for the key of u.
func (q *queue) waitsBefore(ctx context.Context, u unread) (waits bool, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE room = ?1 AND megolm = ?2 AND state = 'utd'
		AND seq < (SELECT seq FROM inbox WHERE id = ?3))`, u.room, u.session.String(), u.id).Scan(&waits)
	return waits, doing("matrix: read inbox", err)
}

// unreadDue returns events that are to be read now.
func (q *queue) unreadDue(ctx context.Context) ([]unread, error) {
	out, err := store.List(ctx, q.db, func(r store.Row) (u unread, err error) {
		var sent, received int64
		err = r.Scan(&u.id, &u.room, &u.sender, &sent, &received, &u.raw, &u.session, &u.tries)
		u.sentAt, u.receivedAt = time.UnixMilli(sent), time.UnixMilli(received)
		return u, err
	}, `SELECT id, room, sender, sent_at, received_at, raw, megolm, tries FROM inbox
		WHERE state IN ('utd', 'failed') AND next_at > 0 AND next_at <= ? ORDER BY seq LIMIT 100`, q.now().UnixMilli())
	return out, doing("matrix: read inbox", err)
}

// unreadNext is when the next event is to be read; an hour from now when none
// has a time.
func (q *queue) unreadNext(ctx context.Context) (time.Time, error) {
	at, err := value[int64](ctx, q.db, `SELECT coalesce(min(next_at), ?1) FROM inbox WHERE state IN ('utd', 'failed') AND next_at BETWEEN 1 AND ?1`, q.now().Add(time.Hour).UnixMilli())
	return time.UnixMilli(at), doing("matrix: read inbox", err)
}

// readLater notes that an event could not be read again, when to try next, and
// what its room is told. The zero time waits for the key.
func (q *queue) readLater(ctx context.Context, u unread, at time.Time, told ...notice) error {
	next := int64(0)
	if !at.IsZero() {
		next = at.UnixMilli()
	}
	state := "utd"
	if u.session == "" {
		state = "failed"
	}
	return q.settle(ctx, told, `UPDATE inbox SET state = ?, megolm = ?, tries = ?, next_at = ?, error = ? WHERE id = ? AND state IN ('utd', 'failed')`,
		state, u.session.String(), u.tries, next, u.err.Error(), u.id)
}

// giveUp ends the tries to read an event.
func (q *queue) giveUp(ctx context.Context, u unread, told notice) error {
	return q.settle(ctx, []notice{told}, `UPDATE inbox SET state = 'dead', tries = ?, next_at = 0, error = ? WHERE id = ? AND state IN ('utd', 'failed')`,
		u.tries, u.err.Error(), u.id)
}

func (q *queue) settle(ctx context.Context, told []notice, query string, args ...any) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		for _, n := range told {
			if err := q.once(ctx, tx, n); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	return doing("matrix: note what became of an event", err)
}
