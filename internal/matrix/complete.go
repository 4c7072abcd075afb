package matrix

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/session"
)

// incomplete tells whether m refers to something that is to be fetched before it is delivered.
func incomplete(m session.Inbound) bool {
	return m.ReplyTo != "" || m.Thread != "" || slices.ContainsFunc(m.Files, func(f session.File) bool { return f.Source != "" })
}

// completeFirst begins to complete the first message of each room that needs it, and
// returns the rows that can be delivered now: those up to the first of their room that
// is not complete. Rooms do not wait for one another.
func (c *Client) completeFirst(ctx context.Context, g *errgroup.Group, l *lanes, rows []inRow) []inRow {
	var ready []inRow
	held := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Change != "" && !held[r.Target]: // it may stop what others wait for
			ready = append(ready, r)
		case held[r.Room]:
			held[r.ID] = true
		case r.incomplete:
			held[r.Room], held[r.ID] = true, true
			l.work(g, r.Room, c.inWake, func() { c.complete(ctx, r.Inbound) })
		default:
			ready = append(ready, r)
		}
	}
	return ready
}

// complete fetches what m lacks and stores it; a restart begins that anew. What cannot be had is
// said in m, so that the model can tell the person.
func (c *Client) complete(ctx context.Context, m session.Inbound) {
	for _, step := range []struct {
		what  string
		limit time.Duration
		fetch func(context.Context, *session.Inbound) error
	}{{"files", fetchLimit, c.fetchFiles}, {"the root of its thread", rootTime, c.fetchRoot}, {"reply", chainTime, c.replyChain}} {
		if err := c.fetchWithin(ctx, step.limit, step.fetch, &m); err != nil && ctx.Err() == nil {
			c.log.Warn("matrix: a message could not be completed", "room", m.Room, "event", m.ID, "what", step.what, "err", err)
		}
	}
	if ctx.Err() != nil {
		return // at the next start
	}
	if err := c.q.completed(ctx, m); err != nil {
		c.log.Error("matrix: inbox", "event", m.ID, "err", err)
		_ = pause(ctx, nil, firstWait) // the row is still incomplete, and would be worked on again at once
	}
}

func (c *Client) fetchWithin(ctx context.Context, limit time.Duration, fetch func(context.Context, *session.Inbound) error, m *session.Inbound) (err error) {
	if c.pace.fetch > 0 {
		limit = min(limit, c.pace.fetch)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // over one message, and what is in it is not ours
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fetch(ctx, m)
}

// unheard is what m quotes without what was heard and taken back while it was completed.
func (q *queue) unheard(ctx context.Context, m session.Inbound) []session.Quote {
	var now session.Inbound
	var with string
	if err := q.db.QueryRowContext(ctx, `SELECT brought FROM inbox WHERE id = ?`, m.ID).Scan(&with); err != nil || unpack(&now, with) != nil {
		return m.Quotes
	}
	return slices.DeleteFunc(m.Quotes, func(x session.Quote) bool {
		return x.Why == session.QuoteHeard && !slices.ContainsFunc(now.Quotes, func(y session.Quote) bool { return y.ID == x.ID })
	})
}

// completed stores what a message was completed with. One that was redacted meanwhile stays as it is.
func (q *queue) completed(ctx context.Context, m session.Inbound) error {
	m.Quotes = q.unheard(ctx, m)
	with, err := pack(m)
	if err != nil {
		return err
	}
	_, err = q.db.ExecContext(ctx, `UPDATE inbox SET brought = ?, incomplete = 0 WHERE id = ? AND state = 'new'`, with, m.ID)
	return doing("matrix: complete a message", err)
}
