package matrix

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/retry"
)

// readIn is where something was read: in a thread of a room, or outside of any.
type readIn struct{ room, thread string }

// mainTimeline is what a receipt calls all that is in no thread.
const mainTimeline = "main"

// receipts sends read receipts; one that fails is not sent again.
type receipts struct {
	cli  *mautrix.Client
	log  *slog.Logger
	wake chan struct{}

	mu     sync.Mutex
	newest map[readIn]string // delivered event, not yet marked as read
}

func newReceipts(cli *mautrix.Client, log *slog.Logger) *receipts {
	return &receipts{cli: cli, log: log, wake: make(chan struct{}, 1), newest: map[readIn]string{}}
}

// read asks run to show that the message was read.
func (r *receipts) read(where readIn, event string) {
	r.mu.Lock()
	r.newest[where] = event
	r.mu.Unlock()
	retry.Wake(r.wake)
}

func (r *receipts) run(ctx context.Context) error {
	return retry.Loop(ctx, time.Now, r.wake, func(ctx context.Context) (never time.Time) {
		r.mu.Lock()
		todo := maps.Clone(r.newest)
		clear(r.newest)
		r.mu.Unlock()
		for where, evt := range todo {
			rctx, cancel := context.WithTimeout(ctx, smallTimeout)
			err := r.cli.SendReceipt(rctx, id.RoomID(where.room), id.EventID(evt), event.ReceiptTypeRead,
				&mautrix.ReqSendReceipt{ThreadID: cmp.Or(where.thread, mainTimeline)})
			cancel()
			if err != nil && ctx.Err() == nil {
				r.log.Debug("matrix: read receipt not sent", "room", where.room, "event", evt, "err", err)
			}
		}
		return never
	})
}
