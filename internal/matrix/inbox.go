package matrix

import (
	"context"
	"fmt"
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
	l := newLanes()
	var g errgroup.Group
	g.SetLimit(parallel)
	defer func() { _ = g.Wait() }()
	return retry.Loop(ctx, c.now, c.inWake, func(ctx context.Context) (again time.Time) {
		l.begin()
		rows, err := c.waiting(ctx)
		if err == nil {
			rows = c.completeFirst(ctx, &g, l, rows)
			err = c.deliverNew(ctx, rows, delivered, deliver)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("matrix: message not delivered; trying again", "err", err)
			again = c.now().Add(retry.FirstWait)
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
	room, err := c.facts(ctx, id.RoomID(m.Room))
	if err != nil {
		return err
	}
	unproven, err := c.acc.Devices.Unproven(ctx, room.encrypted, id.UserID(m.Sender))
	m.Private = m.Private && room.private(m.Sender)
	m.Unproven = m.Unproven || unproven
	return err
}

// completeFirst begins to complete the first message of each room that needs it, and
// returns the rows that can be delivered now: those up to the first of their room that
// is not complete. Rooms do not wait for one another.
func (c *Client) completeFirst(ctx context.Context, g *errgroup.Group, l *lanes, rows []delivery.InboxRow) []delivery.InboxRow {
	var ready []delivery.InboxRow
	held := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Change != "" && !held[r.Target]: // it may stop what others wait for
			ready = append(ready, r)
		case held[r.Room]:
			held[r.ID] = true
		case r.Incomplete:
			held[r.Room], held[r.ID] = true, true
			l.work(g, r.Room, c.inWake, func() { c.complete(ctx, r.Inbound) })
		default:
			ready = append(ready, r)
		}
	}
	return ready
}

// complete fetches what m lacks and stores it; a restart begins that anew. What cannot be had is
// said in m, so that the model can tell the person.
func (c *Client) complete(ctx context.Context, m chat.Inbound) {
	for _, step := range []struct {
		what  string
		limit time.Duration
		fetch func(context.Context, *chat.Inbound) error
	}{{"files", fetchLimit, c.fetchFiles}, {"the root of its thread", rootTime, c.fetchRoot}, {"reply", chainTime, c.replyChain}} {
		if err := c.fetchWithin(ctx, step.limit, step.fetch, &m); err != nil && ctx.Err() == nil {
			c.log.Warn("matrix: a message could not be completed", "room", m.Room, "event", m.ID, "what", step.what, "err", err)
		}
	}
	if ctx.Err() != nil {
		return // at the next start
	}
	if err := c.inbox.Completed(ctx, m); err != nil {
		c.log.Error("matrix: inbox", "event", m.ID, "err", err)
		_ = retry.Pause(ctx, nil, retry.FirstWait) // the row is still incomplete, and would be worked on again at once
	}
}

func (c *Client) fetchWithin(ctx context.Context, limit time.Duration, fetch func(context.Context, *chat.Inbound) error,
	m *chat.Inbound) (err error) {
	if c.pace.fetch > 0 {
		limit = min(limit, c.pace.fetch)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // over one message, and what is in it is not ours
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fetch(ctx, m)
}
