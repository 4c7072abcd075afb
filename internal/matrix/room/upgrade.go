package room

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
	"reverie/internal/pace"
	"reverie/internal/store"
)

// OnTombstone stores the replacement of a room. The homeserver checks the sender's power level, and
// so does OnTombstone, because following a tombstone moves the old room's memory.
func (m *Memberships) OnTombstone(ctx context.Context, evt *event.Event) error {
	content, ok := evt.Content.Parsed.(*event.TombstoneEventContent)
	if !ok || evt.StateKey == nil || *evt.StateKey != "" || evt.Mautrix.EventSource&event.SourceJoin == 0 {
		return nil
	}
	to := content.ReplacementRoom
	if to == "" || to == evt.RoomID {
		return nil
	}
	levels, err := m.Rooms.cli.StateStore.GetPowerLevels(ctx, evt.RoomID)
	switch {
	case err != nil:
		return fmt.Errorf("look up who may replace a room: %w", err)
	case levels == nil || levels.GetUserLevel(evt.Sender) < levels.GetEventLevel(event.StateTombstone):
		m.Log.Warn("matrix: a tombstone is ignored because its sender may not replace the room", "room", evt.RoomID, "to", to,
			"sender", evt.Sender)
		return nil
	}
	noted, err := m.storeTombstone(ctx, evt.RoomID.String(), to.String(), evt.Sender.String())
	if err == nil {
		err = m.holdMessages(ctx, to)
	}
	if err == nil && noted {
		m.Log.Info("matrix: the room is replaced by another one", "room", evt.RoomID, "to", to, "sender", evt.Sender)
		pace.Wake(m.wake)
	}
	return err
}

// storeTombstone stores the tombstone of a room and reports whether it is new. The first one of an
// allowed sender is final; others are replaced by later ones until they are handled. A room
// without events has nothing to move.
func (m *Memberships) storeTombstone(ctx context.Context, room, to, sender string) (noted bool, err error) {
	first, err := store.Value[string](ctx, m.Rooms.db, `SELECT sender FROM matrix_tombstone WHERE room = ?`, room)
	if err != nil || m.Allows(first) {
		return false, err
	}
	res, err := m.Rooms.db.ExecContext(ctx, `INSERT INTO matrix_tombstone (room, replacement, sender, empty, state)
		SELECT id, ?2, ?3, 0, 'new' FROM matrix_room WHERE id = ?1 AND last_event <> ''
		ON CONFLICT (room) DO UPDATE SET replacement = excluded.replacement, sender = excluded.sender
		WHERE state = 'new' AND (replacement <> excluded.replacement OR sender <> excluded.sender)
			AND NOT EXISTS (SELECT 1 FROM matrix_room WHERE replaces = ?1)`, room, to, sender)
	if err != nil {
		return false, fmt.Errorf("note that a room is replaced: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// holdMessages holds back the messages of a room that names a replaced room as predecessor. They
// are delivered after the move. The predecessor may come from stripped state, so it decides nothing
// else.
func (m *Memberships) holdMessages(ctx context.Context, room id.RoomID) error {
	old, _, err := m.predecessor(ctx, room)
	if err != nil || old == "" {
		return err
	}
	return store.Exec(ctx, m.Rooms.db, `UPDATE matrix_room SET replaces = t.room FROM matrix_tombstone AS t
		WHERE id = ?1 AND replaces = '' AND t.room = ?2 AND t.replacement = ?1 AND t.state = 'new'`, room.String(), old)
}

// replacement is a room that a tombstone names, and its progress.
type replacement struct {
	old, room  string
	by         string // sender of the tombstone
	state      string // of the tombstone
	membership string // ours in the new room
	with       string // the person of a direct chat
	attempts   int
	nextAt     int64
}

// followUpgrades verifies replaced rooms and moves their data once no answer is pending in them.
// It returns when to check again.
func (m *Memberships) followUpgrades(ctx context.Context) (next time.Time, err error) {
	next = m.Now().Add(time.Hour)
	list, err := m.replacements(ctx)
	if err != nil {
		return next, err
	}
	for _, r := range list {
		at := time.UnixMilli(r.nextAt)
		switch {
		case r.membership == "joined" && at.After(m.Now()):
		case r.membership == "joined" && r.state == "followed":
			at, err = m.moveRoom(ctx, r)
		case r.membership == "joined":
			at, err = m.verifyReplacement(ctx, r)
		case r.membership == "" && m.Allows(r.by):
			at, err = m.Now(), m.joinReplacement(ctx, r)
		default:
			at, err = time.Time{}, m.reportNotFollowed(ctx, r)
		}
		if err != nil {
			return next, err
		}
		if !at.IsZero() {
			next = pace.Earlier(next, at)
		}
	}
	return next, nil
}

// replacements lists the pending upgrades, without rooms that are being joined or refused.
func (m *Memberships) replacements(ctx context.Context) ([]replacement, error) {
	return store.List(ctx, m.Rooms.db, func(row store.Row) (r replacement, err error) {
		err = row.Scan(&r.old, &r.room, &r.by, &r.state, &r.membership, &r.with, &r.attempts, &r.nextAt)
		return r, err
	}, `SELECT t.room, t.replacement, t.sender, t.state,
			coalesce(n.membership, ''), coalesce(n.direct_with, ''), coalesce(n.attempts, 0), coalesce(n.next_at, 0)
		FROM matrix_tombstone AS t LEFT JOIN matrix_room AS n ON n.id = t.replacement
		WHERE (t.state = 'new' OR t.state = 'followed' AND n.replaces = t.room AND n.moved = 0)
			AND coalesce(n.membership, '') NOT IN ('invited', 'refused') ORDER BY t.replacement, t.room`)
}

// joinReplacement makes Run join a room only because a tombstone names it. Its messages wait until
// verifyReplacement.
func (m *Memberships) joinReplacement(ctx context.Context, r replacement) error {
	return store.Exec(ctx, m.Rooms.db, `INSERT INTO matrix_room (id, membership, inviter, replaces) VALUES (?, 'invited', ?, ?)
		ON CONFLICT (id) DO UPDATE SET membership = 'invited', inviter = excluded.inviter, attempts = 0, next_at = 0,
			replaces = CASE replaces WHEN '' THEN excluded.replaces ELSE replaces END
		WHERE membership = ''`, r.room, r.by, r.old)
}

// verifyReplacement checks that the new room names the old one as predecessor: otherwise a person who
// may replace a room could move its memory into any other. If so, the new room inherits the direct
// chat; if not, both rooms stay as they are. at is the time of the next try; zero = done.
func (m *Memberships) verifyReplacement(ctx context.Context, r replacement) (at time.Time, err error) {
	err = m.Rooms.ensureState(ctx, id.RoomID(r.room))
	ours := false
	if err == nil {
		old, known, failed := m.predecessor(ctx, id.RoomID(r.room))
		if ours, err = old == r.old, failed; err == nil && !known {
			err = errors.New("the state of the room is incomplete: its create event is missing")
		}
	}
	if ctx.Err() != nil {
		return m.Now(), nil
	}
	if err != nil && r.attempts+1 < joinTries {
		return m.retryLater(ctx, r, err)
	}
	state, query := "refused", `UPDATE matrix_room SET replaces = '', attempts = 0, next_at = 0 WHERE id = ?1 AND replaces = ?2`
	if ours {
		state, query = "followed", `UPDATE matrix_room SET replaces = ?2, moved = 0, attempts = 0, next_at = 0,
			direct_with = CASE direct_with WHEN '' THEN coalesce((SELECT direct_with FROM matrix_room WHERE id = ?2), '')
				ELSE direct_with END WHERE id = ?1`
	} else {
		m.Log.Warn("matrix: the new room does not name the old one as predecessor; nothing is moved", "room", r.old,
			"to", r.room, "err", err)
	}
	err = store.InTx(ctx, m.Rooms.db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, query, r.room, r.old); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `UPDATE matrix_tombstone SET state = ? WHERE room = ? AND replacement = ?`, state, r.old, r.room)
	})
	if err != nil || !ours {
		pace.Wake(m.InWake) // its messages may have waited
		return time.Time{}, store.Wrap(err, "matrix: note whether a room is replaced")
	}
	return m.Now(), nil
}

// retryLater records a failure about a replaced room and returns when to try again.
func (m *Memberships) retryLater(ctx context.Context, r replacement, cause error) (time.Time, error) {
	at := m.Now().Add(retry.Backoff(r.attempts))
	m.Log.Warn("matrix: an upgrade could not be followed completely; trying again",
		"room", r.old, "to", r.room, "in", at.Sub(m.Now()).Round(time.Second), "err", cause)
	return at, store.Exec(ctx, m.Rooms.db, `UPDATE matrix_room SET attempts = attempts + 1, next_at = ? WHERE id = ?`,
		at.UnixMilli(), r.room)
}

// moveRoom moves the data of r.old to r.room. at is the time of the next try; zero = done.
func (m *Memberships) moveRoom(ctx context.Context, r replacement) (at time.Time, err error) {
	busy, err := m.Inbox.HasPending(ctx, r.old)
	if err != nil || busy {
		return m.Now().Add(min(time.Second, m.RetryDelay)), err
	}
	err = m.Move(ctx, r.old, r.room)
	if ctx.Err() != nil {
		return m.Now(), nil
	}
	if err != nil && r.attempts+1 < joinTries {
		return m.retryLater(ctx, r, err)
	}
	notice := delivery.Notice{ID: "upgraded-" + r.room, Room: r.room, Text: m.Text(ctx, r.room, "matrix.brought")}
	if err != nil {
		m.Log.Error("matrix: the data of a replaced room could not be moved", "room", r.old, "to", r.room, "err", err)
		notice.Text = ""
	}
	if r.with != "" {
		m.Rooms.addToDirect(ctx, id.RoomID(r.room), id.UserID(r.with))
	}
	err = store.InTx(ctx, m.Rooms.db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE matrix_room SET moved = 1, attempts = 0, next_at = 0 WHERE id = ?`,
			r.room); err != nil || notice.Text == "" {
			return err
		}
		return m.Outbox.Notify(ctx, tx, notice)
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("matrix: note that a room was followed: %w", err)
	}
	m.Log.Info("matrix: an upgrade was followed", "room", r.old, "to", r.room)
	pace.Wake(m.OutWake)
	pace.Wake(m.InWake)
	return time.Time{}, nil
}

// predecessor returns the predecessor that a room's create event names. known is false if the state
// store does not have that event.
func (m *Memberships) predecessor(ctx context.Context, room id.RoomID) (old string, known bool, err error) {
	create, err := m.Rooms.states().GetCreate(ctx, room)
	if err != nil || create == nil {
		return "", false, store.Wrap(err, "look up how the room began")
	}
	return create.Content.AsCreate().GetPredecessor().RoomID.String(), true, nil
}

// reportNotFollowed says that the bot cannot enter the new room. It tells the person who replaced
// the old one, or the old room, where often no one may speak any more.
func (m *Memberships) reportNotFollowed(ctx context.Context, r replacement) error {
	room, err := m.Rooms.DirectChat(ctx, r.by)
	if err != nil {
		return err
	}
	room = cmp.Or(room, r.old)
	return m.Notify(ctx, delivery.Notice{ID: "not-followed-" + r.old, Room: room, Text: m.Text(ctx, room, "matrix.not_followed")})
}
