package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/room"
	"reverie/internal/pace"
	"reverie/internal/store"
)

// readTries is the number of failed tries after which an event is given up. Waiting for a key
// does not count.
const readTries = 3

// marshalEvent returns the parts of an event that reading it again needs, as JSON.
func marshalEvent(evt *event.Event) string {
	raw, _ := json.Marshal(map[string]any{ //nolint:errchkjson // the content was JSON when it came
		"type": evt.Type.Type, "event_id": evt.ID, "sender": evt.Sender, "origin_server_ts": evt.Timestamp,
		"content": evt.Content.VeryRaw,
	})
	return string(raw)
}

// parseStoredEvent parses a stored event into the form that the handlers expect.
func parseStoredEvent(u delivery.Unreadable) (*event.Event, error) {
	evt := &event.Event{}
	if err := json.Unmarshal([]byte(u.Raw), evt); err != nil {
		return nil, fmt.Errorf("read a stored event: %w", err)
	}
	evt.RoomID = id.RoomID(u.Room)
	evt.Type.Class = event.MessageEventType
	evt.Mautrix.EventSource = event.SourceJoin | event.SourceTimeline
	return evt, store.Wrap(evt.Content.ParseRaw(evt.Type), "read a stored event")
}

// missingKeys are the megolm sessions that stored events wait for.
type missingKeys struct {
	wake  chan struct{}
	asked map[id.SessionID]bool // requested in this run; runUnreadableEventRetries only

	mu      sync.Mutex
	arrived map[id.SessionID]struct{}
}

// addArrivedSessionAndWake records that a megolm session arrived: from its sender, another device of
// ours, or the key backup.
func (k *missingKeys) addArrivedSessionAndWake(_ context.Context, _ id.RoomID, s id.SessionID) {
	k.addArrivedSessions(map[id.SessionID]struct{}{s: {}})
	pace.Wake(k.wake)
}

func (k *missingKeys) addArrivedSessions(sessions map[id.SessionID]struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.Copy(k.arrived, sessions)
}

// takeArrivedSessions returns and clears the sessions that arrived since the last call.
func (k *missingKeys) takeArrivedSessions() map[id.SessionID]struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	arrived := k.arrived
	k.arrived = map[id.SessionID]struct{}{}
	return arrived
}

// runUnreadableEventRetries reads stored events again when their key arrives or their time comes. It
// starts with those of an earlier run.
func (c *Client) runUnreadableEventRetries(ctx context.Context, members *room.Memberships) error {
	select { // before, the room state may be outdated
	case <-ctx.Done():
		return ctx.Err()
	case <-c.sync.synced:
	}
	c.keys.addArrivedSessions(map[id.SessionID]struct{}{"": {}}) // keys may have arrived in an earlier run
	return pace.RunWhenDue(ctx, c.cfg.now, c.keys.wake, func(ctx context.Context) time.Time {
		next, err := c.retryDueUnreadableEvents(ctx, members)
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Error("matrix: messages that wait to be read", "err", err)
			next = c.cfg.now().Add(time.Minute)
		}
		return next
	})
}

// retryDueUnreadableEvents tries the events that are due and returns when to try next.
func (c *Client) retryDueUnreadableEvents(ctx context.Context, members *room.Memberships) (time.Time, error) {
	arrived := c.keys.takeArrivedSessions()
	for s := range arrived {
		if err := c.inbox.KeyArrived(ctx, s.String()); err != nil {
			c.keys.addArrivedSessions(arrived) // events that wait for these keys have no other due time
			return time.Time{}, err
		}
	}
	ordered := map[string]bool{}
	for {
		due, next, err := c.inbox.DueReads(ctx)
		if err != nil || len(due) == 0 || ctx.Err() != nil {
			return next, err
		}
		for _, u := range due {
			restart, err := c.retryUnreadableEvent(ctx, u, ordered, members)
			if err != nil {
				return time.Time{}, err
			}
			if restart {
				break
			}
		}
	}
}

// retryUnreadableEvent tries one event and stores the result in one transaction. If an earlier event
// waits for the same key, which may have arrived since its last try, both become due instead. That
// happens once per key, recorded in ordered.
func (c *Client) retryUnreadableEvent(
	ctx context.Context, u delivery.Unreadable, ordered map[string]bool, members *room.Memberships,
) (restart bool, err error) {
	b := &batch{members: members}
	ctx = e2ee.WithFailures(context.WithoutCancel(ctx), b.recordFirstError)
	evt, err := parseStoredEvent(u)
	if err != nil {
		u.Session, u.Err = "", err
		return false, c.retryUnreadableLaterOrGiveUp(ctx, u)
	}
	c.intake.routeEvent(ctx, b, evt, evt)
	if b.err != nil {
		return false, b.err
	}
	if len(b.Unreadable) > 0 {
		u.Session, u.Err = b.Unreadable[0].Session, b.Unreadable[0].Err
		return false, c.retryUnreadableLaterOrGiveUp(ctx, u)
	}
	if u.Session != "" && !ordered[u.Session] {
		ordered[u.Session] = true
		if earlier, err := c.inbox.WaitsBefore(ctx, u); err != nil || earlier {
			return true, cmp.Or(err, c.inbox.KeyArrived(ctx, u.Session))
		}
	}
	c.markLateMessagesAndAddNotices(ctx, b, u)
	b.Read = u.ID
	if err := c.inbox.Commit(ctx, &b.Batch, nil); err != nil {
		return false, err
	}
	c.cfg.Log.Info("matrix: a message can be read now", "room", u.Room, "event", u.ID)
	c.wakeLoopsForBatch(b)
	return false, nil
}

// markLateMessagesAndAddNotices marks a message that became readable too late to answer, and tells its
// room.
func (c *Client) markLateMessagesAndAddNotices(ctx context.Context, b *batch, u delivery.Unreadable) {
	for i, s := range b.In {
		m, asks := s.NeedsAnswer()
		if !asks || !c.isTooOldToAnswer(m.At) {
			continue
		}
		b.In[i].Past = true
		b.Notices = append(b.Notices, delivery.Notice{ID: "late-" + cmp.Or(u.Session, u.ID), Room: m.Room, ReplyTo: m.ID,
			Text: c.cfg.Text(ctx, m.Room, "matrix.late")})
	}
}

// retryUnreadableLaterOrGiveUp requests the key, tells the sender, or gives up.
func (c *Client) retryUnreadableLaterOrGiveUp(ctx context.Context, u delivery.Unreadable) error {
	if u.Session == "" {
		u.Tries++
		if u.Tries < readTries {
			return c.inbox.RetryRead(ctx, u, c.cfg.now().Add(time.Duration(u.Tries)*c.cfg.timings.retry))
		}
		c.cfg.Log.Error("matrix: a message cannot be read and is given up", "room", u.Room, "event", u.ID, "sender", u.Sender,
			"tries", u.Tries, "err", u.Err)
		pace.Wake(c.outWake)
		return c.inbox.GiveUp(ctx, u, delivery.Notice{ID: "unread-" + u.ID, Room: u.Room, Text: c.cfg.Text(ctx, u.Room, "matrix.broken"),
			ReplyTo: u.ID})
	}
	c.requestRoomKeyOnce(ctx, u)
	if noticeAt := u.ReceivedAt.Add(c.cfg.timings.keyWait); noticeAt.After(c.cfg.now()) {
		return c.inbox.RetryRead(ctx, u, noticeAt)
	}
	c.cfg.Log.Warn("matrix: the key of a message has not come", "room", u.Room, "event", u.ID, "sender", u.Sender, "session", u.Session,
		"err", u.Err)
	pace.Wake(c.outWake)
	return c.inbox.RetryRead(ctx, u, time.Time{}, delivery.Notice{ID: "unreadable-" + u.Session + "-" + u.Room, Room: u.Room,
		Text: c.cfg.Text(ctx, u.Room, "matrix.unreadable"), ReplyTo: u.ID})
}

// requestRoomKeyOnce requests a room key from the sender's devices and our own others. It does so once
// per run.
func (c *Client) requestRoomKeyOnce(ctx context.Context, u delivery.Unreadable) {
	if c.keys.asked[id.SessionID(u.Session)] {
		return
	}
	c.keys.asked[id.SessionID(u.Session)] = true
	evt, err := parseStoredEvent(u)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, smallTimeout)
	defer cancel()
	content := evt.Content.AsEncrypted()
	//lint:ignore SA1019 without these deprecated fields all devices are asked
	c.acc.Crypto.RequestSession(ctx, evt.RoomID, content.SenderKey, content.SessionID, evt.Sender, content.DeviceID)
}
