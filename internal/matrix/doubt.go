package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

// doubt is about a message that may have been sent without us learning of it.
// A homeserver that was restarted, or has not done with the first request yet,
// takes it twice under the same transaction id. So it is not sent again before
// a sync shows that it is not there.
type doubt struct {
	due   time.Time // when a sync that does not show the message proves that it is not there
	begun int64     // the sync that had begun when a fresh one was asked for; 0 = not asked yet
}

// endedBefore is how much earlier than a message a sync may fail of a homeserver
// that is being stopped.
const endedBefore = 5 * time.Second

// mayBeSent tells whether the homeserver may have taken what the failed request
// sent.
func mayBeSent(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.Response == nil || !h.IsStatus(http.StatusTooManyRequests))
}

// doubtIt notes that the message id may have been sent.
func (c *Client) doubtIt(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	d := &doubt{due: now.Add(c.pace.echo)}
	if now.Sub(c.lostAt) <= endedBefore {
		d.due = later(d.due, c.lostAt.Add(c.pace.restart))
	}
	c.doubts[id] = d
}

// doubtLeft notes it of all that an earlier run may have been sending when it
// died.
func (c *Client) doubtLeft(ctx context.Context) error {
	ids, err := c.q.unproven(ctx, "")
	if err != nil {
		return err
	}
	for _, id := range ids {
		c.doubtIt(id)
	}
	return nil
}

// deferDoubts counts the time that a homeserver is given from now on.
func (c *Client) deferDoubts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.doubts {
		d.due = later(d.due, c.now().Add(c.pace.echo))
	}
}

// lost notes that a sync failed, perhaps because the homeserver ended. One that ended while
// it took a message may show it only a while after it is back.
func (c *Client) lost(err error) {
	if !mayBeSent(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lostAt = c.now()
	for _, d := range c.doubts {
		d.begun = 0 // a sync that was asked for before proves nothing any more
		d.due = later(d.due, c.lostAt.Add(c.pace.restart))
	}
}

// back notes that syncs succeed again; the first one proves nothing.
func (c *Client) back() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.doubts {
		d.begun = 0
		d.due = later(d.due, c.now().Add(c.pace.echo))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (c *Client) uncertain(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubts[id] != nil
}

// settleDoubts drops those that a sync has settled, has the sync loop hurry for
// those that are due, and returns when the next one will be.
func (c *Client) settleDoubts() (next time.Time) {
	now := c.now()
	next = now.Add(time.Hour)
	ask := false
	c.mu.Lock()
	for id, d := range c.doubts {
		switch {
		case d.begun > 0 && c.sync.done.Load() > d.begun:
			delete(c.doubts, id)
		case d.begun > 0:
		case d.due.After(now):
			next = earlier(next, d.due)
		default:
			d.begun = max(c.sync.begun.Load(), 1)
			ask = true
		}
	}
	c.mu.Unlock()
	if ask {
		c.sync.hurry()
	}
	return next
}

// proveOne finds the message in doubt of a room among events that came without
// their transaction ids: only syncs show those. A room is sent one message at a
// time, so an event of ours that we know nothing of is the oldest in doubt.
func (c *Client) proveOne(ctx context.Context, room id.RoomID, events []*event.Event) error {
	ids, err := c.q.unproven(ctx, room.String())
	if err != nil || len(ids) == 0 {
		return err
	}
	txn, err := c.q.txnOf(ctx, ids[0])
	if err != nil {
		return err
	}
	for _, evt := range events {
		var content struct {
			Device  id.DeviceID     `json:"device_id"`
			Relates event.RelatesTo `json:"m.relates_to"`
		}
		if evt.Sender != c.cli.UserID || evt.Type.Type != event.EventEncrypted.Type && evt.Type.Type != event.EventMessage.Type ||
			json.Unmarshal(evt.Content.VeryRaw, &content) != nil || content.Relates.Type == event.RelReplace ||
			content.Device != "" && content.Device != c.cli.DeviceID || evt.Unsigned.RedactedBecause != nil {
			continue
		}
		ours, err := c.q.ours(ctx, evt.ID.String())
		if err != nil {
			return err
		}
		if !ours {
			evt.Unsigned.TransactionID = txn
			return nil
		}
	}
	return nil
}

// unproven returns the ids of messages of which we know neither that they were
// sent nor that they were not, oldest first; of all rooms when room is empty.
func (q *queue) unproven(ctx context.Context, room string) (ids []string, err error) {
	ids, err = store.Column[string](ctx, q.db, `SELECT id FROM outbox
		WHERE state IN ('draft', 'pending') AND event_id = '' AND ?1 IN ('', room) ORDER BY seq`, room)
	return ids, doing("matrix: read outbox", err)
}
