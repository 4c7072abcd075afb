package send

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
)

// dispatchRedactions is dispatch for events of ours that are to be redacted.
func (s *Sender) dispatchRedactions(ctx context.Context, g *errgroup.Group, l *Lanes) (started bool, next time.Time) {
	now := s.Now()
	next = now.Add(time.Minute)
	due, err := s.Outbox.Redactions(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.Error("matrix: outbox", "err", err)
	}
	for _, t := range due {
		if t.NextAt.After(now) && !t.NextAt.After(now.Add(retry.LongestWait)) { // or our clock was set back
			next = retry.Earlier(next, t.NextAt)
			continue
		}
		started = l.Work(g, t.Room, s.OutWake, func() { s.redact(ctx, t) }) || started
	}
	return started, next
}

// redact removes an event's text from the room. That may be repeated: an event
// can be redacted twice.
func (s *Sender) redact(ctx context.Context, t delivery.Redaction) {
	sendCtx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	why := mautrix.ReqRedact{Reason: s.Text(ctx, t.Room, t.Reason), TxnID: "back:" + t.Event}
	_, err := s.Client.RedactEvent(sendCtx, id.RoomID(t.Room), id.EventID(t.Event), why)
	if err != nil && ctx.Err() != nil {
		return
	}
	v, wait := retry.Classify(err, t.Attempts)
	switch {
	case err != nil && v == retry.Again:
		s.Log.Warn("matrix: a message of ours is not taken back yet", "room", t.Room, "event", t.Event, "reason", t.Reason,
			"in", wait.Round(time.Millisecond), "err", err)
		err = s.Outbox.PostponeRedaction(ctx, t.Event, s.Now().Add(wait))
	default:
		if err != nil {
			s.Log.Error("matrix: a message of ours cannot be taken back", "room", t.Room, "event", t.Event, "reason", t.Reason,
				"err", err)
		} else {
			s.Log.Info("matrix: a message of ours is taken back", "room", t.Room, "event", t.Event, "reason", t.Reason)
		}
		err = s.Outbox.RedactionDone(ctx, t.Event)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Error("matrix: outbox", "event", t.Event, "err", err)
	}
}
