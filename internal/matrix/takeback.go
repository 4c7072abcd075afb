package matrix

import (
	"context"
	"database/sql"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/retry"
	"reverie/internal/store"
)

// takeback is an event of ours that nobody should read twice. A homeserver that
// is stopped while it takes a message may answer with an error, keep the message
// all the same, and show it only when we have long sent it again: no client can
// know that beforehand. So the one that comes late is taken back.
type takeback struct {
	event, room, reason string
	attempts            int
	nextAt              time.Time
}

// takenTwice notes that the event of e is to be taken back when the message has
// another event already: the first that we learned of carries it, for good. So is one
// that comes from before the message was taken out of the room.
func (q *queue) takenTwice(ctx context.Context, tx *sql.Tx, e echo) error {
	id, generation := ofTxn(e.txn)
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO takeback (event_id, room, reason)
		SELECT ?1, room, 'why.sent_twice' FROM outbox WHERE id = ?2 AND event_id <> ?1 AND (generation <> ?3 OR event_id <> '')`, e.event, id, generation)
	return err
}

// takebacks returns the events that are still to be taken back.
func (q *queue) takebacks(ctx context.Context) ([]takeback, error) {
	out, err := store.List(ctx, q.db, func(r store.Row) (t takeback, err error) {
		var next int64
		err = r.Scan(&t.event, &t.room, &t.attempts, &next, &t.reason)
		t.nextAt = time.UnixMilli(next)
		return t, err
	}, `SELECT event_id, room, attempts, next_at, reason FROM takeback ORDER BY rowid`)
	return out, doing("matrix: read what is to be taken back", err)
}

// dispatchTakebacks is dispatch for what is to be taken back.
func (c *Client) dispatchTakebacks(ctx context.Context, g *errgroup.Group, l *lanes) (started bool, next time.Time) {
	now := c.now()
	next = now.Add(time.Minute)
	due, err := c.q.takebacks(ctx)
	if err != nil && ctx.Err() == nil {
		c.log.Error("matrix: outbox", "err", err)
	}
	for _, t := range due {
		if t.nextAt.After(now) && !t.nextAt.After(now.Add(retry.LongestWait)) { // or our clock was set back
			next = earlier(next, t.nextAt)
			continue
		}
		started = l.work(g, t.room, c.outWake, func() { c.takeBack(ctx, t) }) || started
	}
	return started, next
}

// takeBack removes an event's text from the room. That may be repeated: an event
// can be taken back twice.
func (c *Client) takeBack(ctx context.Context, t takeback) {
	sendCtx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, err := c.cli.RedactEvent(sendCtx, id.RoomID(t.room), id.EventID(t.event), mautrix.ReqRedact{Reason: c.cfg.Text(ctx, t.room, t.reason), TxnID: "back:" + t.event})
	if err != nil && ctx.Err() != nil {
		return
	}
	v, wait := retry.Classify(err, t.attempts)
	switch {
	case err != nil && v == retry.Again:
		c.log.Warn("matrix: a message of ours is not taken back yet", "room", t.room, "event", t.event, "reason", t.reason, "in", wait.Round(time.Millisecond), "err", err)
		err = c.q.update(ctx, `UPDATE takeback SET attempts = attempts + 1, next_at = ? WHERE event_id = ?`, c.now().Add(wait).UnixMilli(), t.event)
	default:
		if err != nil {
			c.log.Error("matrix: a message of ours cannot be taken back", "room", t.room, "event", t.event, "reason", t.reason, "err", err)
		} else {
			c.log.Info("matrix: a message of ours is taken back", "room", t.room, "event", t.event, "reason", t.reason)
		}
		err = c.q.update(ctx, `DELETE FROM takeback WHERE event_id = ?`, t.event)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Error("matrix: outbox", "event", t.event, "err", err)
	}
}
