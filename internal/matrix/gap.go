package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
)

const (
	gapEvents = 500       // how far back a gap is filled
	gapTries  = 5         // after so many failed syncs a gap stays
	oldAfter  = time.Hour // a message that could be read only after that is not answered any more
)

// missed fetches the events that a sync left out of a room's timeline, oldest
// first: those between the newest event that was seen, or our joining, and the
// timeline, or the newest ones of them.
func (c *Client) missed(ctx context.Context, room id.RoomID, timeline mautrix.SyncTimeline) ([]*event.Event, error) {
	if timeline.PrevBatch == "" || lastJoin(timeline.Events, c.cli.UserID) >= 0 {
		return nil, nil
	}
	last, err := c.LastEvent(ctx, room)
	if err != nil {
		return nil, err
	}
	found, whole, err := c.pageBack(ctx, room, timeline.PrevBatch, last)
	if err != nil {
		if v, _ := retry.Classify(err, 0); ctx.Err() != nil || v != retry.Never && c.sync.failures.Load() < gapTries {
			return nil, fmt.Errorf("fetch missed messages: %w", err)
		}
		c.cfg.Log.Error("matrix: missed messages cannot be fetched", "room", room, "err", err)
		return nil, nil
	}
	if last == "" && !whole { // nothing of this room was ever seen: all of it would be old
		return nil, nil
	}
	c.cfg.Log.Info("matrix: a gap was filled", "room", room, "events", len(found), "whole", whole)
	slices.Reverse(found)
	return found, nil
}

// pageBack collects events before from, newest first, until it meets last or
// our joining; whole tells whether it did.
func (c *Client) pageBack(ctx context.Context, room id.RoomID, from string, last id.EventID) (found []*event.Event, whole bool, err error) {
	for len(found) < gapEvents {
		page, err := c.page(ctx, room, from)
		if err != nil {
			return nil, false, err
		}
		for _, evt := range page.Chunk {
			switch {
			case last != "" && evt.ID == last:
				return found, true, nil
			case len(found) == gapEvents:
				return found, false, nil
			}
			found = append(found, evt)
			if lastJoin([]*event.Event{evt}, c.cli.UserID) == 0 {
				return found, true, nil
			}
		}
		if page.End == "" || page.End == from {
			break
		}
		from = page.End
	}
	return found, false, nil
}

// lookBack adds to the first sync after an interruption what the last one before it left out:
// a homeserver that is being stopped may answer with a token that is past messages it does not show.
func (c *Client) lookBack(ctx context.Context, res *mautrix.RespSync) error {
	rooms, err := c.Rooms.LastEvents(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards res
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for room, last := range rooms {
		joined := res.Rooms.Join[room]
		if joined == nil {
			joined = &mautrix.SyncJoinedRoom{}
		}
		from := joined.Timeline.PrevBatch
		switch {
		case joined.Timeline.Limited || from == "" && len(joined.Timeline.Events) > 0:
			continue // missed looks there, or nobody can
		case len(joined.Timeline.Events) == 0:
			from = "" // the token may lie before what was left out
		}
		g.Go(func() error {
			page, err := c.page(ctx, room, from)
			if v, _ := retry.Classify(err, 0); v == retry.Never && ctx.Err() == nil || err != nil && c.sync.failures.Load() >= gapTries {
				c.cfg.Log.Warn("matrix: cannot look whether messages were missed", "room", room, "err", err)
				return nil
			}
			if err != nil {
				return fmt.Errorf("look for missed messages: %w", err)
			}
			at := slices.IndexFunc(page.Chunk, func(evt *event.Event) bool { return evt.ID == last })
			if at <= 0 {
				return nil
			}
			c.cfg.Log.Warn("matrix: the homeserver's syncs have left out messages; they are fetched", "room", room, "events", at)
			missed := slices.DeleteFunc(page.Chunk[:at], func(evt *event.Event) bool { return evt.StateKey != nil })
			if len(missed) < at {
				c.Rooms.ForgetState(room)
			}
			slices.Reverse(missed)
			if err := c.MatchEcho(ctx, room, missed); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			joined.Timeline.Events = append(missed, joined.Timeline.Events...)
			if res.Rooms.Join == nil {
				res.Rooms.Join = map[id.RoomID]*mautrix.SyncJoinedRoom{}
			}
			res.Rooms.Join[room] = joined
			return nil
		})
	}
	return g.Wait()
}

// page fetches events before from, newest first; an empty from is now.
func (c *Client) page(ctx context.Context, room id.RoomID, from string) (*mautrix.RespMessages, error) {
	query := map[string]string{"dir": "b", "limit": "100"}
	if from != "" {
		query["from"] = from
	}
	page := &mautrix.RespMessages{}
	var raw json.RawMessage
	_, err := c.cli.MakeRequest(ctx, http.MethodGet, c.cli.BuildURLWithQuery(mautrix.ClientURLPath{"v3", "rooms", room, "messages"}, query),
		nil, &raw)
	if err == nil {
		err = c.decode(raw, page)
	}
	return page, err
}

// wasAway sorts out what is too old for an answer after a long absence, and
// tells each room once. Without an absence a message is not old, whatever it
// says of itself: some server's clock is wrong.
func (c *Client) wasAway(ctx context.Context, b *batch, since time.Time) {
	if since.IsZero() || c.cfg.now().Sub(since) <= oldAfter {
		return
	}
	b.In = slices.DeleteFunc(b.In, func(s delivery.Incoming) bool {
		r, reaction := s.Event.(chat.Reaction)
		return reaction && c.tooOld(r.At)
	})
	told := map[string]string{} // the newest such message of each room
	for i, s := range b.In {
		if m, asks := s.NeedsAnswer(); asks && c.tooOld(m.At) {
			b.In[i].Past, told[m.Room] = true, m.ID
		}
	}
	const layout = "2006-01-02 15:04"
	for room, id := range told {
		text := c.cfg.Text(ctx, room, "matrix.away", "from", since.In(c.cfg.Location).Format(layout), "to",
			c.cfg.now().In(c.cfg.Location).Format(layout))
		b.Notices = append(b.Notices, delivery.Notice{ID: "away-" + id, Room: room, Text: text})
	}
}

// tooOld tells whether a message is older than what still wants an answer, by
// the homeserver's clock: ours may be wrong.
func (c *Client) tooOld(at time.Time) bool { return c.cfg.now().Add(c.acc.Skew()).Sub(at) > oldAfter }

// dropOld removes messages that are not meant for us from the timeline of a
// room, and keeps all state. On a fresh store all messages are old. In the
// batch in which we join, those before our invitation are: what was asked
// between the invitation and our joining waits for an answer.
func dropOld(room *mautrix.SyncJoinedRoom, self id.UserID, fresh bool) (dropped int) {
	events := room.Timeline.Events
	from := 0
	if fresh {
		from = len(events)
	} else if joined := lastJoin(events, self); joined >= 0 {
		from = joined
		for i := joined - 1; i >= 0; i-- {
			if m := ownMembership(events[i], self); m != "" {
				if m == string(event.MembershipInvite) {
					from = i
				}
				break
			}
		}
	}
	kept := events[:0:0]
	for i, evt := range events {
		if i >= from || evt.StateKey != nil {
			kept = append(kept, evt)
		}
	}
	room.Timeline.Events = kept
	return len(events) - len(kept)
}

// lastJoin finds where we came into the room; -1 when that is not in events.
// A changed name or picture of ours is no joining.
func lastJoin(events []*event.Event, self id.UserID) int {
	for i := len(events) - 1; i >= 0; i-- {
		if ownMembership(events[i], self) != string(event.MembershipJoin) {
			continue
		}
		if prev := events[i].Unsigned.PrevContent; prev != nil {
			if m, _ := prev.Raw["membership"].(string); m == string(event.MembershipJoin) {
				continue
			}
		}
		return i
	}
	return -1
}

func ownMembership(evt *event.Event, self id.UserID) string {
	if evt.Type.Type != event.StateMember.Type || evt.StateKey == nil || *evt.StateKey != self.String() {
		return ""
	}
	m, _ := evt.Content.Raw["membership"].(string)
	return m
}
