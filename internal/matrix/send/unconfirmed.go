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

	"reverie/internal/pace"
)

// unconfirmed holds sends whose result is unknown. A homeserver that restarted, or that still
// handles the first request, may accept the same transaction ID twice. So a message is not sent
// again before a sync shows that its echo is missing.
type unconfirmed struct {
	now           func() time.Time
	echo, restart time.Duration // see Config

	mu     sync.Mutex
	sends  map[string]*unconfirmedSend // by message
	lostAt time.Time                   // time of the last failed sync
}

type unconfirmedSend struct {
	due   time.Time // from when on a sync without the echo proves that the message was not sent
	begun int64     // number of the last sync started when a new one was requested; 0 = not requested
}

// restartWindow is the time between a failed sync and a failed send. Within it they may share one
// restart.
const restartWindow = 5 * time.Second

// mayBeSent reports whether the homeserver may have accepted the failed request.
func mayBeSent(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.Response == nil || !h.IsStatus(http.StatusTooManyRequests))
}

// add records that the message id may have been sent.
func (u *unconfirmed) add(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	s := &unconfirmedSend{due: now.Add(u.echo)}
	if now.Sub(u.lostAt) <= restartWindow {
		s.due = later(s.due, u.lostAt.Add(u.restart))
	}
	u.sends[id] = s
}

// has reports whether the message id may have been sent.
func (u *unconfirmed) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sends[id] != nil
}

func (u *unconfirmed) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.sends)
}

// SyncFailed records a failed sync. The homeserver may have restarted, and then it shows the echo of
// a message only a while later.
func (u *unconfirmed) SyncFailed(err error) {
	if !mayBeSent(err) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lostAt = u.now()
	for _, s := range u.sends {
		s.begun = 0 // a sync that was requested before proves nothing any more
		s.due = later(s.due, u.lostAt.Add(u.restart))
	}
}

// SyncRecovered records that syncs succeed again; the first one proves nothing.
func (u *unconfirmed) SyncRecovered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sends {
		s.begun = 0
		s.due = later(s.due, u.now().Add(u.echo))
	}
}

// dropConfirmed drops the sends whose result a sync has shown. It returns when the next one is due.
// ask reports whether the due ones need a new sync. begun and done are the numbers of the last sync
// that was started, and that was processed.
func (u *unconfirmed) dropConfirmed(begun, done int64) (next time.Time, ask bool) {
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
			next = pace.Earlier(next, s.due)
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

// MatchEcho finds the echo of a room's unconfirmed message among events. These events have no
// transaction IDs, which only syncs have. A room is sent one message at a time, so an unknown event
// of ours is the oldest unconfirmed message.
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
