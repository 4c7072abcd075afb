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
	maxGap   = 500       // events of a gap that are fetched at most
	gapTries = 5         // failed syncs after which a gap is skipped
	oldAfter = time.Hour // age at which a message read late is not answered any more
)

// fetchTimelineGap returns the events that a limited timeline left out, oldest first. They start after
// the last stored event or our join. At most the newest maxGap events are returned.
func (c *Client) fetchTimelineGap(ctx context.Context, room id.RoomID, timeline mautrix.SyncTimeline) ([]*event.Event, error) {
	if timeline.PrevBatch == "" || lastOwnJoinIndex(timeline.Events, c.cli.UserID) >= 0 {
		return nil, nil
	}
	last, err := c.LastEvent(ctx, room)
	if err != nil {
		return nil, err
	}
	found, whole, err := c.fetchHistoryBackTo(ctx, room, timeline.PrevBatch, last)
	if err != nil {
		if v, _ := retry.Classify(err, 0); ctx.Err() != nil || v != retry.Never && c.sync.failures.Load() < gapTries {
			return nil, fmt.Errorf("fetch missed messages: %w", err)
		}
		c.cfg.Log.Error("matrix: missed messages cannot be fetched", "room", room, "err", err)
		return nil, nil
	}
	if last == "" && !whole { // no event of this room was ever stored: all of them are too old
		return nil, nil
	}
	c.cfg.Log.Info("matrix: a gap was filled", "room", room, "events", len(found), "whole", whole)
	slices.Reverse(found)
	return found, nil
}

// fetchHistoryBackTo returns the events before from, newest first, up to last or our join. The result
// whole reports whether it reached either.
func (c *Client) fetchHistoryBackTo(ctx context.Context, room id.RoomID, from string, last id.EventID) (
	found []*event.Event, whole bool, err error,
) {
	for len(found) < maxGap {
		page, err := c.fetchHistoryPage(ctx, room, from)
		if err != nil {
			return nil, false, err
		}
		for _, evt := range page.Chunk {
			switch {
			case last != "" && evt.ID == last:
				return found, true, nil
			case len(found) == maxGap:
				return found, false, nil
			}
			found = append(found, evt)
			if lastOwnJoinIndex([]*event.Event{evt}, c.cli.UserID) == 0 {
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

// addEventsMissedBySync adds events that the last sync before an interruption left out.
// A homeserver that shuts down may return a sync token past events that it does not include.
func (c *Client) addEventsMissedBySync(ctx context.Context, res *mautrix.RespSync) error {
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
			continue // fetchTimelineGap handles it, or there is no token to page from
		case len(joined.Timeline.Events) == 0:
			from = "" // the token may be older than the omitted events
		}
		g.Go(func() error {
			page, err := c.fetchHistoryPage(ctx, room, from)
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

// fetchHistoryPage fetches events before from, newest first. An empty from means the newest events.
func (c *Client) fetchHistoryPage(ctx context.Context, room id.RoomID, from string) (*mautrix.RespMessages, error) {
	query := map[string]string{"dir": "b", "limit": "100"}
	if from != "" {
		query["from"] = from
	}
	page := &mautrix.RespMessages{}
	var raw json.RawMessage
	_, err := c.cli.MakeRequest(ctx, http.MethodGet, c.cli.BuildURLWithQuery(mautrix.ClientURLPath{"v3", "rooms", room, "messages"}, query),
		nil, &raw)
	if err == nil {
		err = c.decodeResponseDroppingBadEvents(raw, page)
	}
	return page, err
}

// markOldMessagesPastAndTellRooms marks messages that are too old to answer after a long absence. It tells
// each room once. Without an absence it trusts no timestamp: some server's clock may be wrong.
func (c *Client) markOldMessagesPastAndTellRooms(ctx context.Context, b *batch, since time.Time) {
	if since.IsZero() || c.cfg.now().Sub(since) <= oldAfter {
		return
	}
	b.In = slices.DeleteFunc(b.In, func(s delivery.Incoming) bool {
		r, reaction := s.Event.(chat.Reaction)
		return reaction && c.isTooOldToAnswer(r.At)
	})
	newest := map[string]string{} // room → its newest skipped message
	for i, s := range b.In {
		if m, asks := s.NeedsAnswer(); asks && c.isTooOldToAnswer(m.At) {
			b.In[i].Past, newest[m.Room] = true, m.ID
		}
	}
	const layout = "2006-01-02 15:04"
	for room, id := range newest {
		text := c.cfg.Text(ctx, room, "matrix.away", "from", since.In(c.cfg.Location).Format(layout), "to",
			c.cfg.now().In(c.cfg.Location).Format(layout))
		b.Notices = append(b.Notices, delivery.Notice{ID: "away-" + id, Room: room, Text: text})
	}
}

// isTooOldToAnswer reports whether a message is too old to answer. It compares with the homeserver's
// clock because ours may be wrong.
func (c *Client) isTooOldToAnswer(at time.Time) bool {
	return c.cfg.now().Add(c.acc.HomeserverClockSkew()).Sub(at) > oldAfter
}

// dropMessagesBeforeJoin removes messages from before the bot's time from a timeline. It keeps all state
// events. With a new store all messages are old. In the sync with our join, messages before our
// invitation are old; those between invitation and join are answered.
func dropMessagesBeforeJoin(room *mautrix.SyncJoinedRoom, self id.UserID, fresh bool) (dropped int) {
	events := room.Timeline.Events
	from := 0
	if fresh {
		from = len(events)
	} else if joined := lastOwnJoinIndex(events, self); joined >= 0 {
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

// lastOwnJoinIndex returns the index of our last join in events, or -1.
// A member event that changes only our profile is no join.
func lastOwnJoinIndex(events []*event.Event, self id.UserID) int {
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
