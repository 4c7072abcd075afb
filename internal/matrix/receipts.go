package matrix

import (
	"cmp"
	"context"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// readIn is where something was read: in a thread of a room, or outside of any.
type readIn struct{ room, thread string }

// mainTimeline is what a receipt calls all that is in no thread.
const mainTimeline = "main"

// showRead sends read receipts for the newest message that was read anywhere; one that fails is
// not sent again.
func (c *Client) showRead(ctx context.Context, newest map[readIn]string) {
	c.receipts.Lock() // one after another
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
