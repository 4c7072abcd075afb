package matrix

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
	"reverie/internal/store"
)

const smallTimeout = 10 * time.Second // for requests nobody waits for

// atOnce is how many messages of a room are handed over before the first of
// them is handled.
const atOnce = 64

// runInbox hands messages to deliver, in the order they came; first those that
// an earlier run left undone.
func (c *Client) runInbox(ctx context.Context, deliver func(context.Context, chat.Inbound) error) error {
	delivered := map[string]bool{} // and not handled yet
	l, incomplete := newLanes(), c.completer()
	var g errgroup.Group
	g.SetLimit(parallel)
	defer func() { _ = g.Wait() }()
	return retry.Loop(ctx, c.cfg.now, c.inWake, func(ctx context.Context) (again time.Time) {
		l.begin()
		rows, err := c.waiting(ctx)
		if err == nil {
			rows = incomplete.completeFirst(ctx, &g, l, rows)
			err = c.deliverNew(ctx, rows, delivered, deliver)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("matrix: message not delivered; trying again", "err", err)
			again = c.cfg.now().Add(retry.FirstWait)
		}
		return again
	})
}

// waiting returns the messages that need an answer. Those of a room that takes the place of
// another one wait until it has what belongs to that.
func (c *Client) waiting(ctx context.Context) ([]delivery.InboxRow, error) {
	rows, err := c.inbox.Waiting(ctx, atOnce)
	if err != nil {
		return nil, err
	}
	held, err := store.Column[string](ctx, c.cfg.DB, `SELECT id FROM matrix_room WHERE replaces <> '' AND moved = 0`)
	rows = slices.DeleteFunc(rows, func(r delivery.InboxRow) bool { return slices.Contains(held, r.Room) })
	return rows, doing("matrix: read rooms", err)
}

// deliverNew delivers those of rows that are not delivered yet, up to the first
// that fails.
func (c *Client) deliverNew(ctx context.Context, rows []delivery.InboxRow, delivered map[string]bool,
	deliver func(context.Context, chat.Inbound) error) error {
	waiting := map[string]bool{}
	for _, r := range rows {
		waiting[r.ID] = true
	}
	maps.DeleteFunc(delivered, func(id string, _ bool) bool { return !waiting[id] })
	for _, r := range rows {
		if delivered[r.ID] {
			continue
		}
		if err := c.judgeAgain(ctx, &r.Inbound); err != nil {
			return err
		}
		if err := deliver(ctx, r.Inbound); err != nil {
			return err
		}
		if r.Change == "" || r.Change == chat.Edited {
			c.receipts.read(readIn{r.Room, r.Thread}, r.ID)
		}
		delivered[r.ID] = true
	}
	return nil
}

// judgeAgain looks whether m is private and proven still: others may have come in while it
// waited, and the identity of its sender may have become known.
func (c *Client) judgeAgain(ctx context.Context, m *chat.Inbound) error {
	room, err := c.rooms.facts(ctx, id.RoomID(m.Room))
	if err != nil {
		return err
	}
	unproven, err := c.acc.Devices.Unproven(ctx, room.Encrypted, id.UserID(m.Sender))
	m.Private = m.Private && room.Private(m.Sender)
	m.Unproven = m.Unproven || unproven
	return err
}
