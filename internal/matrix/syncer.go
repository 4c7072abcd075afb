package matrix

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/retry"
)

// batch collects what the handlers find in one sync, to be stored in one
// transaction with the token. It belongs to one goroutine.
type batch struct {
	delivery.Batch
	last map[string]string // room → the newest event in it
	err  error             // something of ours failed: the same sync must be worked on again
}

// fail notes that the batch cannot be stored as it is. It is for faults of
// ours, such as a full disk; what is wrong with an event goes into Unreadable.
func (b *batch) fail(err error) { b.err = cmp.Or(b.err, err) }

// library takes the handlers of mautrix: those of its state store, its crypto machine and its
// verification. It leaves out what would take a whole sync, see e2ee.Store.Take, and the handler for
// encrypted events, which waits for missing keys in goroutines that a restart ends.
type library struct{ *mautrix.DefaultSyncer }

func (library) OnSync(mautrix.SyncHandler) {}

func (l library) OnEventType(t event.Type, h mautrix.EventHandler) {
	if t != event.EventEncrypted {
		l.DefaultSyncer.OnEventType(t, h)
	}
}

// process works through a sync and then stores its result and the next token
// in one transaction. It can be repeated with the same sync.
func (c *Client) process(ctx context.Context, res *mautrix.RespSync, pos position) error {
	b := &batch{last: map[string]string{}}
	if err := c.arrange(ctx, res, pos, b); err != nil {
		return err
	}
	// Once begun, a batch is finished: an Olm session that has stepped on while
	// the key it carried was not stored would lose that key for good.
	ctx = e2ee.WithFailures(context.WithoutCancel(ctx), b.fail)
	// The crypto machine fetches these lists at once, and forgets about one that it does not get.
	if err := c.machine().CryptoStore.MarkTrackedUsersOutdated(ctx, res.DeviceLists.Changed); err != nil {
		return fmt.Errorf("note that lists of devices have changed: %w", err)
	}
	c.Rooms.MembersIn(res)
	c.acc.Store.Take(ctx, func(evt *event.Event, f func()) { c.intake.guard(b, evt, f) }, res, pos.token)
	c.intake.takeAll(ctx, b, res)
	if b.err != nil {
		return b.err
	}
	if len(res.DeviceLists.Changed) > 0 {
		if err := c.intake.changedKeys(ctx, b); err != nil {
			return err
		}
	}
	for _, u := range b.Unreadable {
		c.cfg.Log.Warn("matrix: a message cannot be read yet",
			"room", u.Room, "event", u.ID, "sender", u.Sender, "session", u.Session, "err", u.Err)
	}
	c.wasAway(ctx, b, pos.at)
	if err := c.commit(ctx, res.NextBatch, b); err != nil {
		return err
	}
	c.wake(b)
	return nil
}

// wake tells the loops that a batch has work for them.
func (c *Client) wake(b *batch) {
	if len(b.In)+len(b.Notices) > 0 {
		retry.Wake(c.inWake)
		retry.Wake(c.redactWake)
		retry.Wake(c.outWake) // also for a redaction: one part of an answer takes the others with it
	}
	if len(b.Unreadable) > 0 {
		retry.Wake(c.keys.wake)
	}
}

// arrange makes the timelines what the handlers are to see: gaps are filled,
// and what was said before we came is left out.
func (c *Client) arrange(ctx context.Context, res *mautrix.RespSync, pos position, b *batch) error {
	if pos.token != "" && (c.sync.done.Load() == 0 || c.sync.failures.Load() > 0) {
		if err := c.lookBack(ctx, res); err != nil {
			return err
		}
	}
	for room, joined := range res.Rooms.Join {
		if n := len(joined.Timeline.Events); n > 0 {
			b.last[room.String()] = joined.Timeline.Events[n-1].ID.String()
		}
		missed := map[id.EventID]bool{}
		if pos.token != "" && joined.Timeline.Limited {
			events, err := c.missed(ctx, room, joined.Timeline)
			if err != nil {
				return err
			}
			if err := c.Rooms.WatchMissed(ctx, room, events); err != nil {
				return err
			}
			for _, evt := range events {
				missed[evt.ID] = true
			}
			joined.Timeline.Events = append(events, joined.Timeline.Events...)
		}
		if n := dropOld(joined, c.cli.UserID, pos.token == ""); n > 0 {
			c.cfg.Log.Debug("matrix: messages from before the bot came are left alone", "room", room, "events", n)
		}
		joined.Timeline.Events = slices.DeleteFunc(joined.Timeline.Events, func(evt *event.Event) bool {
			return evt.StateKey != nil && missed[evt.ID] // the sync tells of the newest state by itself
		})
	}
	return nil
}
