package matrix

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/session"
)

// completion fetches something that a message refers to and does not hold, after
// the message was taken in and before it is delivered. A restart begins it anew.
type completion struct {
	name string
	// needs tells whether m has something to be fetched. It is asked while a sync is
	// stored, so it only looks at m.
	needs func(m session.Inbound) bool
	// fetch adds to m what it can get. What cannot be had is said in m, so that the
	// model can tell the person; an error is only logged.
	fetch func(c *Client, ctx context.Context, m *session.Inbound) error
	limit time.Duration // for all of fetch
}

// completions lists what messages are completed with, in the order it is done.
func completions() []completion {
	return []completion{fetching, threadRoot, repliedTo}
}

func incomplete(m session.Inbound) bool {
	return slices.ContainsFunc(completions(), func(k completion) bool { return k.needs(m) })
}

// completeFirst begins to complete the first message of each room that needs it, and
// returns the rows that can be delivered now: those up to the first of their room that
// is not complete. Rooms do not wait for one another.
func (c *Client) completeFirst(ctx context.Context, g *errgroup.Group, l *lanes, rows []inRow) []inRow {
	var ready []inRow
	held := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Change != "" && r.incomplete:
			l.work(g, r.Room, c.inWake, func() { c.adopt(ctx, r.Inbound) })
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

// complete fetches what m lacks and stores it.
func (c *Client) complete(ctx context.Context, m session.Inbound) {
	was := m.Text
	for _, k := range completions() {
		if !k.needs(m) {
			continue
		}
		if err := c.fetchFor(ctx, k, &m); err != nil && ctx.Err() == nil {
			c.log.Warn("matrix: a message could not be completed", "room", m.Room, "event", m.ID, "what", k.name, "err", err)
		}
	}
	if ctx.Err() != nil {
		return // at the next start
	}
	if err := c.q.completed(ctx, m, was); err != nil {
		c.log.Error("matrix: inbox", "event", m.ID, "err", err)
		_ = pause(ctx, nil, firstWait) // the row is still incomplete, and would be worked on again at once
	}
}

func (c *Client) fetchFor(ctx context.Context, k completion, m *session.Inbound) (err error) {
	limit := k.limit
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
	return k.fetch(c, ctx, m)
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

// completed stores what a message was completed with, whose text was was. One that was
// taken back meanwhile stays as it is, and so does the text of one that was edited.
func (q *queue) completed(ctx context.Context, m session.Inbound, was string) error {
	m.Quotes = q.unheard(ctx, m)
	with, err := pack(m)
	if err != nil {
		return err
	}
	_, err = q.db.ExecContext(ctx, `UPDATE inbox SET text = iif(text = ?, ?, text), brought = ?, incomplete = 0 WHERE id = ? AND state = 'new'`, was, m.Text, with, m.ID)
	return doing("matrix: complete a message", err)
}
