package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/retry"
)

// readTries is how often reading an event may go wrong before it is given up.
// Waiting for a key is no try.
const readTries = 3

// unread is an event of somebody we listen to that could not be read or
// handled. It waits in the inbox.
type unread struct {
	id, room, sender string
	sentAt           time.Time
	raw              string
	session          id.SessionID // the Megolm session whose key is missing; empty = something else is wrong
	tries            int
	wait             time.Duration // until it is tried again
	receivedAt       time.Time
	err              error
}

// onEncrypted decrypts an event and hands it to the handlers.
func (c *Client) onEncrypted(ctx context.Context, b *batch, evt *event.Event) error {
	content, ok := evt.Content.Parsed.(*event.EncryptedEventContent)
	if !ok || content.Algorithm == "" || evt.StateKey != nil || evt.Unsigned.RedactedBecause != nil {
		return nil
	}
	plain, err := c.devices.Decrypt(ctx, evt)
	switch {
	case err == nil:
		c.cli.Syncer.(*syncer).Dispatch(context.WithValue(ctx, originKey{}, evt), plain)
	case errors.Is(err, crypto.ErrDuplicateMessageIndex): // somebody plays an old message again
		c.log.Warn("matrix: a repeated encrypted message is ignored", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "err", err)
	case errors.Is(err, crypto.ErrNoSessionFound), errors.Is(err, crypto.ErrGroupSessionWithheld), errors.Is(err, olm.ErrUnknownMessageIndex):
		c.keep(b, evt, content.SessionID, err)
	default:
		c.keep(b, evt, "", err)
	}
	return nil
}

// keep puts an event that cannot be read now into the batch, if its sender may talk to the bot.
func (c *Client) keep(b *batch, evt *event.Event, missing id.SessionID, cause error) {
	message := evt.Type == event.EventEncrypted || evt.Type == event.EventMessage
	if !message || evt.Mautrix.EventSource&event.SourceLeave != 0 || !c.gate.allows(evt.Sender.String()) {
		c.log.Debug("matrix: an event that cannot be read is dropped", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "err", cause)
		return
	}
	u := unread{
		id: evt.ID.String(), room: evt.RoomID.String(), sender: evt.Sender.String(), sentAt: time.UnixMilli(evt.Timestamp),
		raw: rawEvent(evt), session: missing, tries: 1, wait: c.pace.again, err: cause,
	}
	if missing != "" {
		u.tries, u.wait = 0, c.pace.askKey
	}
	b.unread = append(b.unread, u)
}

// rawEvent is the event as it came, as far as reading it needs.
func rawEvent(evt *event.Event) string {
	raw, _ := json.Marshal(map[string]any{ //nolint:errchkjson // the content was JSON when it came
		"type": evt.Type.Type, "event_id": evt.ID, "sender": evt.Sender, "origin_server_ts": evt.Timestamp, "content": json.RawMessage(evt.Content.VeryRaw),
	})
	return string(raw)
}

// event makes a stored event what the handlers expect.
func (u unread) event() (*event.Event, error) {
	evt := &event.Event{}
	if err := json.Unmarshal([]byte(u.raw), evt); err != nil {
		return nil, fmt.Errorf("read a stored event: %w", err)
	}
	evt.RoomID = id.RoomID(u.room)
	evt.Type.Class = event.MessageEventType
	evt.Mautrix.EventSource = event.SourceJoin | event.SourceTimeline
	if err := evt.Content.ParseRaw(evt.Type); err != nil {
		return nil, fmt.Errorf("read a stored event: %w", err)
	}
	return evt, nil
}

// keyArrived is called for each Megolm session that arrives, from whatever
// source: the sender, another device of ours, the key backup.
func (c *Client) keyArrived(_ context.Context, _ id.RoomID, s id.SessionID) {
	c.mu.Lock()
	c.arrived[s] = struct{}{}
	c.mu.Unlock()
	retry.Wake(c.unreadWake)
}

// runUnread reads again what could not be read, when its key comes or when it
// is time; first all that an earlier run has left.
func (c *Client) runUnread(ctx context.Context) error {
	select { // the state of the rooms may be old before
	case <-ctx.Done():
		return ctx.Err()
	case <-c.synced:
	}
	c.mu.Lock()
	c.arrived[""] = struct{}{} // which of the keys came in an earlier run is not known
	c.mu.Unlock()
	return retry.Loop(ctx, c.now, c.unreadWake, func(ctx context.Context) time.Time {
		next, err := c.readAgain(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.Error("matrix: messages that wait to be read", "err", err)
			next = c.now().Add(time.Minute)
		}
		return next
	})
}

// readAgain tries what is due and returns when to look again.
func (c *Client) readAgain(ctx context.Context) (time.Time, error) {
	c.mu.Lock()
	arrived := c.arrived
	c.arrived = map[id.SessionID]struct{}{}
	c.mu.Unlock()
	for s := range arrived {
		if err := c.q.readSoon(ctx, s); err != nil {
			c.mu.Lock() // what waits for these keys has no other time to be looked at
			maps.Copy(c.arrived, arrived)
			c.mu.Unlock()
			return time.Time{}, err
		}
	}
	ordered := map[id.SessionID]bool{}
	for {
		due, err := c.q.unreadDue(ctx)
		if err != nil || len(due) == 0 || ctx.Err() != nil {
			break
		}
		for _, u := range due {
			again, err := c.readOne(ctx, u, ordered)
			if err != nil {
				return time.Time{}, err
			}
			if again {
				break
			}
		}
	}
	return c.q.unreadNext(ctx)
}

// readOne tries one event. What comes of it is stored in one transaction. If an
// earlier one waits for the same key, which may have come since that was tried,
// both are made due and nothing else is done: once for a key, noted in ordered.
func (c *Client) readOne(ctx context.Context, u unread, ordered map[id.SessionID]bool) (again bool, err error) {
	ctx = context.WithoutCancel(ctx)
	b := &batch{}
	evt, err := u.event()
	if err != nil {
		u.session, u.err = "", err
		return false, c.stillUnread(ctx, u)
	}
	c.cli.Syncer.(*syncer).Dispatch(b.context(ctx), evt)
	if b.err != nil {
		return false, b.err
	}
	if len(b.unread) > 0 {
		u.session, u.err = b.unread[0].session, b.unread[0].err
		return false, c.stillUnread(ctx, u)
	}
	if u.session != "" && !ordered[u.session] {
		ordered[u.session] = true
		if earlier, err := c.q.waitsBefore(ctx, u); err != nil || earlier {
			return true, cmp.Or(err, c.q.readSoon(ctx, u.session))
		}
	}
	c.tooLate(ctx, b, u)
	if err := c.q.read(ctx, u.id, b); err != nil {
		return false, err
	}
	c.log.Info("matrix: a message can be read now", "room", u.room, "event", u.id, "answered", slices.ContainsFunc(b.in, incoming.asks))
	c.wake(b)
	return false, nil
}

// tooLate sorts out a message that could be read only when it no longer
// matters much.
func (c *Client) tooLate(ctx context.Context, b *batch, u unread) {
	for i, m := range b.in {
		if !m.asks() || !c.tooOld(m.At) {
			continue
		}
		b.in[i].past = true
		name := "late-" + u.session.String()
		if u.session == "" {
			name = "late-" + u.id
		}
		b.notices = append(b.notices, notice{id: name, room: m.Room, text: c.cfg.Text(ctx, m.Room, "matrix.late"), replyTo: m.ID})
	}
}

// stillUnread asks for the key, tells the sender, or gives up.
func (c *Client) stillUnread(ctx context.Context, u unread) error {
	if u.session == "" {
		u.tries++
		if u.tries < readTries {
			return c.q.readLater(ctx, u, c.now().Add(time.Duration(u.tries)*c.pace.again))
		}
		c.log.Error("matrix: a message cannot be read and is given up", "room", u.room, "event", u.id, "sender", u.sender, "tries", u.tries, "err", u.err)
		retry.Wake(c.outWake)
		return c.q.giveUp(ctx, u, notice{id: "unread-" + u.id, room: u.room, text: c.cfg.Text(ctx, u.room, "matrix.broken"), replyTo: u.id})
	}
	c.askForKey(ctx, u)
	if told := u.receivedAt.Add(c.pace.keyWait); told.After(c.now()) {
		return c.q.readLater(ctx, u, told)
	}
	c.log.Warn("matrix: the key of a message has not come", "room", u.room, "event", u.id, "sender", u.sender, "session", u.session, "err", u.err)
	retry.Wake(c.outWake)
	return c.q.readLater(ctx, u, time.Time{}, notice{id: "unreadable-" + u.session.String() + "-" + u.room, room: u.room, text: c.cfg.Text(ctx, u.room, "matrix.unreadable"), replyTo: u.id})
}

// askForKey asks the sender's devices and our own others for a key, once in
// each run.
func (c *Client) askForKey(ctx context.Context, u unread) {
	if c.asked[u.session] {
		return
	}
	c.asked[u.session] = true
	evt, err := u.event()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, smallTimeout)
	defer cancel()
	content := evt.Content.AsEncrypted()
	//lint:ignore SA1019 without these deprecated fields all devices are asked
	c.acc.Crypto.RequestSession(ctx, evt.RoomID, content.SenderKey, content.SessionID, evt.Sender, content.DeviceID)
}
