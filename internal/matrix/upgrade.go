package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
	"maunium.net/go/mautrix/sqlstatestore"
)

// OnUpgrade tells what brings along what belongs to a room when another one
// takes its place. move must be repeatable; it is called when all that was asked
// in the room from is answered, and before anything said in the room to is
// delivered. To be called before Run.
func (c *Client) OnUpgrade(move func(ctx context.Context, from, to string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move = move
}

// onTombstone follows a room to the one that replaces it. That its sender may
// end the room is checked by the homeserver, and once more here, because
// following costs the old room its memory.
func (c *Client) onTombstone(ctx context.Context, evt *event.Event) {
	content, ok := evt.Content.Parsed.(*event.TombstoneEventContent)
	if !ok || evt.StateKey == nil || *evt.StateKey != "" || evt.Mautrix.EventSource&event.SourceJoin == 0 {
		return
	}
	to := content.ReplacementRoom
	if to == "" || to == evt.RoomID {
		return
	}
	levels, err := c.cli.StateStore.GetPowerLevels(ctx, evt.RoomID)
	switch {
	case err != nil:
		fail(ctx, fmt.Errorf("look up who may replace a room: %w", err))
		return
	case levels == nil || levels.GetUserLevel(evt.Sender) < levels.GetEventLevel(event.StateTombstone):
		c.log.Warn("matrix: a room was replaced by somebody who may not do that; not followed", "room", evt.RoomID, "to", to, "sender", evt.Sender)
		return
	}
	// Once: told again, or by another room, it changes nothing. A room of which
	// nothing was ever seen here has nothing to bring along: a fresh store is
	// told of all rooms that were ever replaced.
	res, err := c.q.db.ExecContext(ctx, `INSERT INTO matrix_room (id, membership, direct, inviter, replaces, moved)
		VALUES (?1, 'invited', coalesce((SELECT direct FROM matrix_room WHERE id = ?2), 0), ?3, ?2, coalesce((SELECT last_event = '' FROM matrix_room WHERE id = ?2), 1))
		ON CONFLICT (id) DO UPDATE SET replaces = excluded.replaces, moved = excluded.moved, direct = max(direct, excluded.direct), inviter = excluded.inviter,
			membership = CASE membership WHEN 'joined' THEN 'joined' ELSE 'invited' END, attempts = 0, next_at = 0 WHERE replaces = ''`,
		to.String(), evt.RoomID.String(), evt.Sender.String())
	if err != nil {
		fail(ctx, fmt.Errorf("note that a room is replaced: %w", err))
		return
	}
	if n, err := res.RowsAffected(); err == nil && n > 0 {
		c.log.Info("matrix: the room is replaced by another one", "room", evt.RoomID, "to", to, "sender", evt.Sender)
		poke(c.roomWake)
	}
}

// replacement is a room that has not got yet what belonged to an older one.
type replacement struct {
	old, room string
	by        string // who replaced it
	joined    bool
	attempts  int
	nextAt    int64
}

// followUpgrades brings along what belongs to rooms that were replaced, as soon
// as nothing is to be answered in them any more, and returns when to look again.
func (c *Client) followUpgrades(ctx context.Context) (next time.Time, err error) {
	next = c.now().Add(time.Hour)
	list, err := c.replacements(ctx)
	if err != nil {
		return next, err
	}
	for _, r := range list {
		if !r.joined {
			if err := c.notFollowed(ctx, r); err != nil {
				return next, err
			}
			continue
		}
		at := time.UnixMilli(r.nextAt)
		if !at.After(c.now()) {
			if at, err = c.bring(ctx, r); err != nil {
				return next, err
			}
		}
		if !at.IsZero() {
			next = earlier(next, at)
		}
	}
	return next, nil
}

func (c *Client) replacements(ctx context.Context) ([]replacement, error) {
	rows, err := c.q.db.QueryContext(ctx, `SELECT replaces, id, inviter, membership = 'joined', attempts, next_at FROM matrix_room
		WHERE replaces <> '' AND moved = 0 AND membership IN ('joined', 'left') ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("matrix: look up replaced rooms: %w", err)
	}
	defer rows.Close()
	var list []replacement
	for rows.Next() {
		var r replacement
		if err := rows.Scan(&r.old, &r.room, &r.by, &r.joined, &r.attempts, &r.nextAt); err != nil {
			return nil, fmt.Errorf("matrix: look up replaced rooms: %w", err)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// bring moves what belongs to r.old to r.room; at is when to try again, the
// zero time means that it is done.
func (c *Client) bring(ctx context.Context, r replacement) (at time.Time, err error) {
	busy, err := c.q.busy(ctx, r.old)
	if err != nil || busy {
		return c.now().Add(min(time.Second, c.pace.again)), err
	}
	ours, err := c.succeeds(ctx, r)
	if err == nil && !ours {
		c.log.Warn("matrix: the new room does not say that it replaces the old one; nothing is brought along", "room", r.old, "to", r.room)
		return time.Time{}, c.q.moved(ctx, r, "")
	}
	c.mu.Lock()
	move := c.move
	c.mu.Unlock()
	if err == nil && move != nil {
		err = move(ctx, r.old, r.room)
	}
	if ctx.Err() != nil {
		return c.now(), nil
	}
	text := c.cfg.Text(ctx, r.room, "matrix.brought")
	if err != nil {
		if r.attempts+1 < joinTries {
			at = c.now().Add(backoff(r.attempts))
			c.log.Warn("matrix: a replaced room is not followed completely; trying again", "room", r.old, "to", r.room, "in", at.Sub(c.now()).Round(time.Second), "err", err)
			_, err := c.q.db.ExecContext(ctx, `UPDATE matrix_room SET attempts = attempts + 1, next_at = ? WHERE id = ?`, at.UnixMilli(), r.room)
			return at, err
		}
		c.log.Error("matrix: what belongs to a replaced room stays there", "room", r.old, "to", r.room, "err", err)
		text = c.cfg.Text(ctx, r.room, "matrix.left_behind")
	}
	if err := c.q.moved(ctx, r, text); err != nil {
		return time.Time{}, err
	}
	c.log.Info("matrix: the new room is taken up", "room", r.old, "to", r.room)
	poke(c.outWake)
	poke(c.inWake)
	return time.Time{}, nil
}

// succeeds tells whether the new room names the old one as its predecessor.
// Both have to say so: what is remembered in one room must not be moved into
// any other by those who may end it.
func (c *Client) succeeds(ctx context.Context, r replacement) (bool, error) {
	if err := c.knowRoom(ctx, id.RoomID(r.room)); err != nil {
		return false, err
	}
	create, err := c.cli.StateStore.(*sqlstatestore.SQLStateStore).GetCreate(ctx, id.RoomID(r.room))
	if err != nil {
		return false, fmt.Errorf("look up how the room began: %w", err)
	}
	if create == nil {
		return false, errors.New("the state of the room is incomplete: how it began is missing")
	}
	return create.Content.AsCreate().GetPredecessor().RoomID.String() == r.old, nil
}

// notFollowed says in the old room that the new one is closed to us; where
// nobody may speak there any more, the one who replaced it is told, if we know
// how.
func (c *Client) notFollowed(ctx context.Context, r replacement) error {
	room := r.old
	facts, err := c.facts(ctx, id.RoomID(r.old))
	if err != nil {
		return err
	}
	if muted, err := c.muted(ctx, id.RoomID(r.old), facts); err != nil {
		return err
	} else if muted {
		if room, err = c.DirectChat(ctx, r.by); err != nil || room == "" {
			return err
		}
	}
	text := c.cfg.Text(ctx, room, "matrix.not_followed")
	err = c.q.inTx(ctx, func(tx *sql.Tx) error {
		return c.q.once(ctx, tx, notice{id: "not-followed-" + r.room, room: room, text: text})
	})
	poke(c.outWake)
	return err
}

// busy tells whether something is to be answered or said in a room.
func (q *queue) busy(ctx context.Context, room string) (busy bool, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM inbox WHERE room = ?1 AND state = 'new')
		OR EXISTS (SELECT 1 FROM outbox WHERE room = ?1 AND state IN ('draft', 'pending'))`, room).Scan(&busy)
	if err != nil {
		return true, fmt.Errorf("matrix: look whether a room is busy: %w", err)
	}
	return busy, nil
}

// moved notes that a room has what belonged to the one it replaces, and tells it.
func (q *queue) moved(ctx context.Context, r replacement, text string) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE matrix_room SET moved = 1, attempts = 0, next_at = 0 WHERE id = ?`, r.room); err != nil || text == "" {
			return err
		}
		return q.once(ctx, tx, notice{id: "upgraded-" + r.room, room: r.room, text: text})
	})
	if err != nil {
		return fmt.Errorf("matrix: note that a room was followed: %w", err)
	}
	return nil
}
