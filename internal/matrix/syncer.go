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
	"reverie/internal/matrix/room"
	"reverie/internal/pace"
)

// batch collects the results of one sync. They are stored in one transaction with the sync token.
// It belongs to one goroutine.
type batch struct {
	delivery.Batch
	members *room.Memberships
	last    map[string]string // room → its newest event
	err     error             // a local fault: the same sync must be processed again
}

// recordFirstError records that the batch cannot be stored. It is for local faults such as a full
// disk. An event that cannot be read goes to Unreadable.
func (b *batch) recordFirstError(err error) { b.err = cmp.Or(b.err, err) }

// mautrixSyncer runs the handlers of mautrix: its state store, Olm machine and verification. It
// leaves out handlers of whole syncs, see e2ee.Store.Take, and the one for encrypted events, which
// waits for missing keys in goroutines that a restart would end.
type mautrixSyncer struct{ *mautrix.DefaultSyncer }

func (mautrixSyncer) OnSync(mautrix.SyncHandler) {}

func (l mautrixSyncer) OnEventType(t event.Type, h mautrix.EventHandler) {
	if t != event.EventEncrypted {
		l.DefaultSyncer.OnEventType(t, h)
	}
}

// processAndStoreSync handles a sync and stores its result and the next token in one transaction. It
// can be repeated with the same sync.
func (c *Client) processAndStoreSync(ctx context.Context, res *mautrix.RespSync, pos position, members *room.Memberships) error {
	b := &batch{members: members, last: map[string]string{}}
	if err := c.fillGapsAndDropEventsBeforeJoin(ctx, res, pos, b); err != nil {
		return err
	}
	// A started batch is finished: if an Olm session advanced and the room key it carried was not
	// stored, that key would be lost.
	ctx = e2ee.WithFailures(context.WithoutCancel(ctx), b.recordFirstError)
	// The Olm machine fetches these device lists at once. It does not retry a failed one.
	if err := c.olmMachine().CryptoStore.MarkTrackedUsersOutdated(ctx, res.DeviceLists.Changed); err != nil {
		return fmt.Errorf("note that lists of devices have changed: %w", err)
	}
	c.Rooms.CountMemberChanges(res)
	c.acc.Store.ProcessSync(ctx, func(evt *event.Event, f func()) { c.intake.callAndRecoverPanic(b, evt, f) }, res, pos.token)
	c.intake.routeSyncEvents(ctx, b, res)
	if b.err != nil {
		return b.err
	}
	if len(res.DeviceLists.Changed) > 0 {
		if err := c.intake.tellOwnersOfChangedKeys(ctx, b); err != nil {
			return err
		}
	}
	for _, u := range b.Unreadable {
		c.cfg.Log.Warn("matrix: a message cannot be read yet",
			"room", u.Room, "event", u.ID, "sender", u.Sender, "session", u.Session, "err", u.Err)
	}
	if pos.returning() {
		if err := (recovery{c}).dropHandled(ctx, b); err != nil {
			return err
		}
	}
	c.markOldMessagesPastAndTellRooms(ctx, b, pos.at)
	if err := c.commitBatchAndSyncToken(ctx, res.NextBatch, b); err != nil {
		return err
	}
	c.wakeLoopsForBatch(b)
	return nil
}

// wakeLoopsForBatch signals the loops that have work in a batch.
func (c *Client) wakeLoopsForBatch(b *batch) {
	if len(b.In)+len(b.Notices) > 0 {
		pace.Wake(c.inWake)
		pace.Wake(c.redactWake)
		pace.Wake(c.outWake) // also for a redaction, which redacts the other parts of an answer
	}
	if len(b.Unreadable) > 0 {
		pace.Wake(c.keys.wake)
	}
}

// fillGapsAndDropEventsBeforeJoin fills the gaps of the timelines and removes messages from before our join.
func (c *Client) fillGapsAndDropEventsBeforeJoin(ctx context.Context, res *mautrix.RespSync, pos position, b *batch) error {
	if pos.token != "" && (c.sync.done.Load() == 0 || c.sync.failures.Load() > 0) {
		if err := c.addEventsMissedBySync(ctx, res); err != nil {
			return err
		}
	}
	for room, joined := range res.Rooms.Join {
		if n := len(joined.Timeline.Events); n > 0 {
			b.last[room.String()] = joined.Timeline.Events[n-1].ID.String()
		}
		missed := map[id.EventID]bool{}
		if pos.returning() {
			if err := (recovery{c}).dropKnown(ctx, room, &joined.Timeline); err != nil {
				return err
			}
		}
		if (pos.token != "" || pos.returning()) && joined.Timeline.Limited {
			events, err := c.fetchTimelineGap(ctx, room, joined.Timeline)
			if err != nil {
				return err
			}
			if err := c.Rooms.ExposeFromGap(ctx, room, events); err != nil {
				return err
			}
			for _, evt := range events {
				missed[evt.ID] = true
			}
			joined.Timeline.Events = append(events, joined.Timeline.Events...)
		}
		if n := dropMessagesBeforeJoin(joined, c.cli.UserID, pos.at.IsZero()); n > 0 {
			c.cfg.Log.Debug("matrix: messages from before the bot came are left alone", "room", room, "events", n)
		}
		joined.Timeline.Events = slices.DeleteFunc(joined.Timeline.Events, func(evt *event.Event) bool {
			return evt.StateKey != nil && missed[evt.ID] // the sync has the newest state itself
		})
	}
	return nil
}
