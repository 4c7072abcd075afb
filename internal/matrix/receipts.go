package matrix

import (
	"cmp"
	"context"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

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
