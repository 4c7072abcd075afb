package matrix

import (
	"cmp"
	"context"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/session"
)

const (
	typingFor     = 30 * time.Second
	typingRefresh = 20 * time.Second
	offTimeout    = 2 * time.Second  // to say that nobody types any more
	smallTimeout  = 10 * time.Second // for requests nobody waits for
	deliverTries  = 5
)

// atOnce is how many messages of a room are handed over before the first of
// them is handled.
const atOnce = 64

// runInbox hands messages to deliver, in the order they came; first those that
// an earlier run left undone.
func (c *Client) runInbox(ctx context.Context, deliver func(context.Context, session.Inbound) error) error {
	delivered := map[string]bool{} // and not handled yet
	tries := 0
	l := newLanes()
	var g errgroup.Group
	g.SetLimit(parallel)
	defer func() { _ = g.Wait() }()
	return c.loop(ctx, c.inWake, func(ctx context.Context) (again time.Time) {
		l.begin()
		rows, err := c.q.waiting(ctx, atOnce)
		if err == nil {
			rows = c.completeFirst(ctx, &g, l, rows)
			err = c.deliverNew(ctx, rows, delivered, &tries, deliver)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("matrix: message not delivered; trying again", "err", err)
			again = c.now().Add(backoff(tries))
		}
		return again
	})
}

// deliverNew delivers those of rows that are not delivered yet, up to the first
// that fails. One that keeps failing is left for the next start.
func (c *Client) deliverNew(ctx context.Context, rows []inRow, delivered map[string]bool, tries *int, deliver func(context.Context, session.Inbound) error) error {
	waiting, rooms := map[string]bool{}, map[string]int{}
	full := false
	for _, r := range rows {
		waiting[r.ID] = true
		rooms[r.Room]++
		full = full || rooms[r.Room] == atOnce
	}
	c.backlog.Store(full)
	maps.DeleteFunc(delivered, func(id string, _ bool) bool { return !waiting[id] })
	for _, r := range rows {
		if delivered[r.ID] {
			continue
		}
		if gone, err := c.Withdrawn(ctx, r.ID); gone || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if err := c.judgeAgain(ctx, &r.Inbound); err != nil {
			return err
		}
		err := deliver(ctx, r.Inbound)
		if err != nil {
			if *tries++; *tries < deliverTries || ctx.Err() != nil {
				return err
			}
			c.log.Error("matrix: message left for the next start", "room", r.Room, "event", r.ID, "err", err)
		} else if r.Change == "" || r.Change == session.Edited {
			c.markRead(readIn{r.Room, r.Thread}, r.ID)
		}
		delivered[r.ID], *tries = true, 0
	}
	return nil
}

// judgeAgain looks whether m is private and proven still: others may have come in while it
// waited, and the identity of its sender may have become known.
func (c *Client) judgeAgain(ctx context.Context, m *session.Inbound) error {
	room, err := c.facts(ctx, id.RoomID(m.Room))
	if err != nil {
		return err
	}
	unproven, err := c.unproven(ctx, room, id.UserID(m.Sender))
	m.Private = m.Private && room.private(m.Sender)
	m.Unproven = m.Unproven || unproven
	return err
}

// readIn is where something was read: in a thread of a room, or outside of any.
type readIn struct{ room, thread string }

// mainTimeline is what a receipt calls all that is in no thread.
const mainTimeline = "main"

// markRead asks runReceipts to show that the message was read.
func (c *Client) markRead(where readIn, event string) {
	c.mu.Lock()
	c.receipts[where] = event
	c.mu.Unlock()
	poke(c.receiptWake)
}

// runReceipts sends read receipts; one that fails is not sent again.
func (c *Client) runReceipts(ctx context.Context) error {
	return c.loop(ctx, c.receiptWake, func(ctx context.Context) (never time.Time) {
		c.mu.Lock()
		todo := maps.Clone(c.receipts)
		clear(c.receipts)
		c.mu.Unlock()
		for where, evt := range todo {
			rctx, cancel := context.WithTimeout(ctx, smallTimeout)
			err := c.cli.SendReceipt(rctx, id.RoomID(where.room), id.EventID(evt), event.ReceiptTypeRead, &mautrix.ReqSendReceipt{ThreadID: cmp.Or(where.thread, mainTimeline)})
			cancel()
			if err != nil && ctx.Err() == nil {
				c.log.Debug("matrix: read receipt not sent", "room", where.room, "event", evt, "err", err)
			}
		}
		return never
	})
}

// typing is what a room is shown, and what it should be shown.
type typing struct {
	want, shown bool
	refresh     time.Time
}

// Typing shows or hides that an answer is being written, see session.Transport.
func (c *Client) Typing(_ context.Context, room string, on bool) {
	c.mu.Lock()
	t := c.typing[room]
	if t == nil {
		t = &typing{}
		c.typing[room] = t
	}
	t.want = on
	c.mu.Unlock()
	poke(c.typingWake)
}

// runTyping keeps typing notices as they should be: they run out by themselves
// after typingFor, so they are refreshed before, and at the end all are off.
func (c *Client) runTyping(ctx context.Context) error {
	defer c.showTyping(ctx, true)
	return c.loop(ctx, c.typingWake, func(ctx context.Context) time.Time { return c.showTyping(ctx, false) })
}

func (c *Client) showTyping(ctx context.Context, end bool) (next time.Time) {
	now := c.now()
	next = now.Add(time.Hour)
	todo := map[string]bool{}
	c.mu.Lock()
	for room, t := range c.typing {
		want := t.want && !end
		if want != t.shown || want && !t.refresh.After(now) {
			todo[room] = want
		}
		t.shown = want
		if !want {
			delete(c.typing, room)
			continue
		}
		if todo[room] {
			t.refresh = now.Add(typingRefresh)
		}
		next = earlier(next, t.refresh)
	}
	c.mu.Unlock()
	for room, on := range todo {
		rctx, cancel := context.WithTimeout(ctx, smallTimeout)
		if !on { // the end of the program must not cut it off: nobody would say it again
			cancel()
			rctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), offTimeout)
		}
		_, err := c.cli.UserTyping(rctx, id.RoomID(room), on, typingFor)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.log.Debug("matrix: typing notice not sent", "room", room, "err", err)
		}
	}
	return next
}
