package matrix

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
	"reverie/internal/matrix/send"
	"reverie/internal/pace"
)

const (
	smallTimeout = 10 * time.Second // of small requests
	parallel     = 8                // rooms worked on at the same time
)

// maxPending limits the messages of a room that are delivered and not handled yet.
const maxPending = 64

// runInboxDelivery passes messages to deliver in the order of their arrival. It starts with those that
// an earlier run has not finished.
func (c *Client) runInboxDelivery(ctx context.Context, deliver func(context.Context, chat.Inbound) error) error {
	handed := map[int64]bool{} // delivered and not answered yet
	l, incomplete := send.NewRoomLocks(), &completer{intake: c.intake, inbox: c.inbox, wake: c.inWake}
	var g errgroup.Group
	g.SetLimit(parallel)
	defer func() { _ = g.Wait() }()
	return pace.RunWhenDue(ctx, c.cfg.now, c.inWake, func(ctx context.Context) (next time.Time) {
		l.Begin()
		began := time.Now()
		rows, err := c.unansweredInboxRows(ctx, handed)
		if err == nil {
			rows = incomplete.startCompletingMessages(ctx, &g, l, rows)
			err = c.deliverInboxRows(ctx, rows, handed, deliver)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("matrix: message not delivered; trying again", "err", err)
			next = c.cfg.now().Add(retry.FirstWait)
		}
		// With a thousand rooms waiting a look takes long, and each message that is done asks for one.
		_ = pace.Pause(ctx, nil, 4*time.Since(began))
		return next
	})
}

// unansweredInboxRows returns the inbox rows to be delivered. It leaves out rooms whose data still
// has to be moved from the room that they replace.
func (c *Client) unansweredInboxRows(ctx context.Context, handed map[int64]bool) ([]delivery.InboxRow, error) {
	rows, err := c.inbox.Waiting(ctx, handed, maxPending)
	if err != nil {
		return nil, err
	}
	moving, err := c.AwaitingMove(ctx)
	rows = slices.DeleteFunc(rows, func(r delivery.InboxRow) bool { return slices.Contains(moving, r.Message.Room) })
	return rows, err
}

// deliverInboxRows delivers rows, up to the first that fails, and puts them into handed.
func (c *Client) deliverInboxRows(ctx context.Context, rows []delivery.InboxRow, handed map[int64]bool,
	deliver func(context.Context, chat.Inbound) error) error {
	newest := map[receiptKey]string{}
	defer func() {
		if len(newest) > 0 {
			// go: receipts are not waited for; they end with ctx
			go c.sendReadReceipts(ctx, newest)
		}
	}()
	for _, r := range rows {
		m := &r.Message
		if err := c.updatePrivateAndUnproven(ctx, &m.Head); err != nil {
			return err
		}
		in := r.Inbound()
		if err := deliver(ctx, in); err != nil {
			return err
		}
		switch in.(type) {
		case chat.Message, chat.Edit:
			newest[receiptKey{m.Room, m.Thread}] = m.ID
		}
		handed[r.Seq] = true
	}
	return nil
}

// updatePrivateAndUnproven updates whether h is private and its sender is proven. While the message
// waited, people may have joined, and the sender's identity may have become known.
func (c *Client) updatePrivateAndUnproven(ctx context.Context, h *chat.Head) error {
	room, err := c.Rooms.Facts(ctx, id.RoomID(h.Room))
	if err != nil {
		return err
	}
	unproven, err := c.acc.Devices.Unproven(ctx, room.Encrypted, id.UserID(h.Sender))
	h.Private = h.Private && room.Private(h.Sender)
	h.Unproven = h.Unproven || unproven
	return err
}

// Ack records that an inbound message needs no more work. The answer to most has done so: a look costs less
// than waiting for other writers.
func (c *Client) Ack(ctx context.Context, id string) error {
	state, err := delivery.InboxState(ctx, c.cfg.DB, id)
	if err == nil && state == "new" {
		err = c.inbox.MarkDone(ctx, c.cfg.DB, id)
	}
	pace.Wake(c.inWake) // a room may have more messages than are handed over at once
	return err
}

// MessageCancelled reports whether the inbound message id was redacted before it was answered.
func (c *Client) MessageCancelled(ctx context.Context, id string) (bool, error) {
	state, err := delivery.InboxState(ctx, c.cfg.DB, id)
	return state == "redacted", err
}

// ReferencedFiles lists the stored files that rows of the inbox or outbox still refer to.
func (c *Client) ReferencedFiles(ctx context.Context) ([]string, error) {
	return c.inbox.KeptFiles(ctx)
}

// receiptKey is the place of a read receipt: a thread of a room, or its main timeline.
type receiptKey struct{ room, thread string }

// mainTimeline is the thread ID of a receipt for events outside threads.
const mainTimeline = "main"

// sendReadReceipts sends a read receipt for the newest event of each place. A failed one is not retried.
func (c *Client) sendReadReceipts(ctx context.Context, newest map[receiptKey]string) {
	c.receipts.Lock() // one at a time
	defer c.receipts.Unlock()
	for where, evt := range newest {
		rctx, cancel := context.WithTimeout(ctx, smallTimeout)
		err := c.cli.SendReceipt(rctx, id.RoomID(where.room), id.EventID(evt), event.ReceiptTypeRead,
			&mautrix.ReqSendReceipt{ThreadID: cmp.Or(where.thread, mainTimeline)})
		cancel()
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Debug("matrix: read receipt not sent", "room", where.room, "event", evt, "err", err)
		}
	}
}
