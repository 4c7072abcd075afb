package send

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
	"reverie/internal/pace"
)

// dispatchRedactions starts the redactions that are due, like dispatch.
func (s *Sender) dispatchRedactions(ctx context.Context, g *errgroup.Group, l *RoomLocks) (started bool, next time.Time) {
	now := s.Now()
	next = now.Add(time.Minute)
	due, err := s.Outbox.Redactions(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.Error("matrix: outbox", "err", err)
	}
	for _, t := range due {
		if t.NextAt.After(now) && !t.NextAt.After(now.Add(retry.LongestWait)) { // or our clock was set back
			next = pace.Earlier(next, t.NextAt)
			continue
		}
		started = l.TryGo(g, t.Room, s.OutWake, func() { s.redact(ctx, t) }) || started
	}
	return started, next
}

// redact redacts an event. It is repeatable.
func (s *Sender) redact(ctx context.Context, t delivery.Redaction) {
	sendCtx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	why := mautrix.ReqRedact{Reason: s.Text(ctx, t.Room, t.Reason), TxnID: "back:" + t.Event}
	_, err := s.Client.RedactEvent(sendCtx, id.RoomID(t.Room), id.EventID(t.Event), why)
	if err != nil && ctx.Err() != nil {
		return
	}
	switch v, wait := retry.Classify(err, t.Attempts); v {
	case retry.Again:
		s.Log.Warn("matrix: redaction failed; trying again", "room", t.Room, "event", t.Event, "reason", t.Reason,
			"in", wait.Round(time.Millisecond), "err", err)
		err = s.Outbox.PostponeRedaction(ctx, t.Event, s.Now().Add(wait))
	case retry.Fine:
		s.Log.Info("matrix: redacted a message of ours", "room", t.Room, "event", t.Event, "reason", t.Reason)
		err = s.Outbox.RedactionDone(ctx, t.Event)
	default:
		s.Log.Error("matrix: redaction given up", "room", t.Room, "event", t.Event, "reason", t.Reason, "err", err)
		err = s.Outbox.RedactionDone(ctx, t.Event)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Error("matrix: outbox", "event", t.Event, "err", err)
	}
}
