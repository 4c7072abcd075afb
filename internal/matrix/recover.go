package matrix

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
)

// recovery brings a new device to where an earlier one has stopped. See package backup.
type recovery struct{ *Client }

// storeSent stores what an earlier device of ours has sent since bot.db was copied, so that nothing is
// sent or answered twice. It does nothing once this device has synced.
func (c recovery) storeSent(ctx context.Context) error {
	pos, err := c.storedSyncPosition(ctx)
	if err != nil || !pos.returning() {
		return err
	}
	var joined *mautrix.RespJoinedRooms
	err = c.acc.RetryRequest(ctx, "asking for the rooms", func() (err error) { joined, err = c.cli.JoinedRooms(ctx); return err })
	if err != nil {
		return fmt.Errorf("matrix: ask for the rooms: %w", err)
	}
	for _, room := range joined.JoinedRooms {
		err := c.acc.RetryRequest(ctx, "reading what was said in the meantime", func() error { return c.storeSentIn(ctx, room) })
		if err != nil {
			return fmt.Errorf("matrix: read what was said in %s in the meantime: %w", room, err)
		}
	}
	return nil
}

func (c recovery) storeSentIn(ctx context.Context, room id.RoomID) error {
	last, err := c.LastEvent(ctx, room)
	if err != nil {
		return err
	}
	events, _, err := c.fetchHistoryBackTo(ctx, room, "", last)
	if v, _ := retry.Classify(err, 0); err != nil && v == retry.Never && ctx.Err() == nil {
		c.cfg.Log.Error("matrix: what was said in the meantime cannot be read", "room", room, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	slices.Reverse(events)
	said, answers := c.Carried(room, events)
	if len(said) > 0 {
		c.cfg.Log.Info("matrix: found what an earlier device of the bot has sent", "room", room, "events", len(said))
	}
	return c.outbox.Recover(ctx, said, answers)
}

// dropHandled removes what storeSent found to be handled from the batch of a first sync, and
// decisions: whether a tool has run for them is unknown.
func (c recovery) dropHandled(ctx context.Context, b *batch) (err error) {
	b.In = slices.DeleteFunc(b.In, func(s delivery.Incoming) bool {
		switch said := s.Event.(type) {
		case chat.Message:
			state, failed := delivery.InboxState(ctx, c.cfg.DB, said.ID)
			err = cmp.Or(err, failed)
			return state == "done" || state == "redacted"
		case chat.Reaction, chat.Vote:
			return true
		}
		return false
	})
	return err
}

// dropKnown removes known messages from the timeline of a first sync, which begins anywhere. State events
// stay: the state that comes with the sync is older.
func (c recovery) dropKnown(ctx context.Context, room id.RoomID, timeline *mautrix.SyncTimeline) error {
	last, err := c.LastEvent(ctx, room)
	at := slices.IndexFunc(timeline.Events, func(evt *event.Event) bool { return evt.ID == last })
	if at < 0 {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(timeline.Events[:at+1]), func(evt *event.Event) bool { return evt.StateKey == nil })
	timeline.Events, timeline.Limited = append(known, timeline.Events[at+1:]...), false
	return err
}
