package send

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/retry"
)

// unconfirmed holds the messages that may have been sent without us learning of it.
// A homeserver that was restarted, or has not done with the first request yet,
// takes one twice under the same transaction id. So it is not sent again before
// a sync shows that it is not there.
type unconfirmed struct {
	now           func() time.Time
	echo, restart time.Duration // see Config

	mu     sync.Mutex
	sends  map[string]*unconfirmedSend // by message
	lostAt time.Time                   // when a sync failed last
}

type unconfirmedSend struct {
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

// add notes that the message id may have been sent.
func (u *unconfirmed) add(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	s := &unconfirmedSend{due: now.Add(u.echo)}
	if now.Sub(u.lostAt) <= endedBefore {
		s.due = later(s.due, u.lostAt.Add(u.restart))
	}
	u.sends[id] = s
}

// has tells whether the message id may have been sent.
func (u *unconfirmed) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sends[id] != nil
}

// extend counts the time that a homeserver is given from now on.
func (u *unconfirmed) extend() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sends {
		s.due = later(s.due, u.now().Add(u.echo))
	}
}

// Lost notes that a sync failed, perhaps because the homeserver ended. One that ended while
// it took a message may show it only a while after it is back.
func (u *unconfirmed) Lost(err error) {
	if !mayBeSent(err) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lostAt = u.now()
	for _, s := range u.sends {
		s.begun = 0 // a sync that was asked for before proves nothing any more
		s.due = later(s.due, u.lostAt.Add(u.restart))
	}
}

// Back notes that syncs succeed again; the first one proves nothing.
func (u *unconfirmed) Back() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sends {
		s.begun = 0
		s.due = later(s.due, u.now().Add(u.echo))
	}
}

// settle drops the messages that a sync has settled, and returns when the next one will be due.
// ask tells whether a fresh sync is needed for those that are due. begun and done number the
// newest sync that was begun, and that was processed.
func (u *unconfirmed) settle(begun, done int64) (next time.Time, ask bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	next = now.Add(time.Hour)
	for id, s := range u.sends {
		switch {
		case s.begun > 0 && done > s.begun:
			delete(u.sends, id)
		case s.begun > 0:
		case s.due.After(now):
			next = retry.Earlier(next, s.due)
		default:
			s.begun = max(begun, 1)
			ask = true
		}
	}
	return next, ask
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// MatchEcho finds the unconfirmed message of a room among events that came without
// their transaction ids: only syncs show those. A room is sent one message at a
// time, so an event of ours that we know nothing of is the oldest of them.
func (s *Sender) MatchEcho(ctx context.Context, room id.RoomID, events []*event.Event) error {
	rows, err := s.Outbox.Unconfirmed(ctx, room.String())
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, evt := range events {
		var content struct {
			Device  id.DeviceID     `json:"device_id"`
			Relates event.RelatesTo `json:"m.relates_to"`
		}
		if evt.Sender != s.Client.UserID || evt.Type.Type != event.EventEncrypted.Type && evt.Type.Type != event.EventMessage.Type ||
			json.Unmarshal(evt.Content.VeryRaw, &content) != nil || content.Relates.Type == event.RelReplace ||
			content.Device != "" && content.Device != s.Client.DeviceID || evt.Unsigned.RedactedBecause != nil {
			continue
		}
		ours, err := s.Outbox.IsOwnEvent(ctx, evt.ID.String())
		if err != nil {
			return err
		}
		if !ours {
			evt.Unsigned.TransactionID = rows[0].Txn
			return nil
		}
	}
	return nil
}
