package memory

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	scrollAtOnce = 1000
	maxPages     = 100_000 // a server that never ends is not followed further
)

// compared is what is on the server and in the database, and differs.
type compared struct {
	strange int // points of no entry, or of one that is not to be there
	stale   int // entries that changed since
	missing int // entries that are not there
}

// reconcile compares all points of the present collection with the entries.
// With repair, strange ones are removed and the others noted in the outbox.
func (p *Points) reconcile(ctx context.Context, repair bool) (compared, error) {
	var c compared
	space, dim := p.vectors.current()
	name := collectionName(p.alias, p.vectors.embedder.Name(), dim)
	var last int64
	if err := p.db.QueryRowContext(ctx, `SELECT coalesce(max(n), 0) FROM memory`).Scan(&last); err != nil {
		return c, fmt.Errorf("compare points: %w", err)
	}
	there := make([]uint64, last/64+1) // a bit for each entry
	var from json.RawMessage
	for n := 0; ; n++ {
		page, err := p.server.scroll(ctx, name, from, scrollAtOnce)
		if err != nil {
			return c, err
		}
		if err := p.comparePage(ctx, page.Points, space, there, name, repair, &c); err != nil {
			return c, err
		}
		if len(page.Next) == 0 || string(page.Next) == "null" {
			break
		}
		if n == maxPages || bytes.Equal(page.Next, from) {
			return c, errors.New("compare points: the Qdrant server's list never ends")
		}
		from = page.Next
	}
	missing, err := p.missing(ctx, space, there)
	if err != nil {
		return c, err
	}
	c.missing = len(missing)
	if !repair {
		return c, nil
	}
	return c, p.note(ctx, missing)
}

// shouldBe is what the database says of an entry that a point stands for.
type shouldBe struct {
	n int64
	pointPayload
}

// comparePage looks at some points.
func (p *Points) comparePage(ctx context.Context, points []held, space int64, there []uint64, name string, repair bool, c *compared) error {
	ids := make([]string, len(points))
	for i, f := range points {
		ids[i] = f.Payload.Entry
	}
	known, err := p.shouldBe(ctx, space, ids)
	if err != nil {
		return err
	}
	var strange []json.RawMessage
	var stale []string
	for _, f := range points {
		e, ok := known[f.Payload.Entry]
		if !ok || string(f.ID) != `"`+pointID(f.Payload.Entry)+`"` {
			strange = append(strange, f.ID)
			continue
		}
		if i := e.n / 64; i < int64(len(there)) {
			there[i] |= 1 << (e.n % 64)
		}
		if e.pointPayload != f.Payload {
			stale = append(stale, f.Payload.Entry)
		}
	}
	c.strange += len(strange)
	c.stale += len(stale)
	if !repair {
		return nil
	}
	if len(strange) > 0 {
		if err := p.server.remove(ctx, name, strange); err != nil {
			return err
		}
	}
	return p.note(ctx, stale)
}

// shouldBe tells which of the entries ids are to be on the server, and how.
func (p *Points) shouldBe(ctx context.Context, space int64, ids []string) (map[string]shouldBe, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := p.db.QueryContext(ctx, `SELECT m.n, m.id, m.rev, m.scope, m.state, m.observed_at FROM json_each(?) AS j CROSS JOIN memory AS m ON m.id = j.value
		JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash WHERE `+indexed+` AND length(v.vec) > 0`, string(list), space)
	if err != nil {
		return nil, fmt.Errorf("compare points: %w", err)
	}
	defer rows.Close()
	out := map[string]shouldBe{}
	for rows.Next() {
		var s shouldBe
		if err := rows.Scan(&s.n, &s.Entry, &s.Rev, &s.Scope, &s.State, &s.At); err != nil {
			return nil, fmt.Errorf("compare points: %w", err)
		}
		out[s.Entry] = s
	}
	return out, rows.Err()
}

// missing lists the entries that have a vector, and no bit in there.
func (p *Points) missing(ctx context.Context, space int64, there []uint64) ([]string, error) {
	rows, err := p.db.QueryContext(ctx, `SELECT m.n, m.id FROM memory AS m JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash WHERE `+indexed+` AND length(v.vec) > 0`, space)
	if err != nil {
		return nil, fmt.Errorf("compare points: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var n int64
		var id string
		if err := rows.Scan(&n, &id); err != nil {
			return nil, fmt.Errorf("compare points: %w", err)
		}
		if i := n / 64; i >= int64(len(there)) || there[i]&(1<<(n%64)) == 0 {
			out = append(out, id)
		}
	}
	return out, rows.Err()
}

// note puts entries into the outbox.
func (p *Points) note(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return p.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO memory_outbox (entry, gone) SELECT m.id, NOT (`+indexed+`) FROM json_each(?) AS j CROSS JOIN memory AS m ON m.id = j.value WHERE true ON CONFLICT DO NOTHING`, string(list))
		return err
	})
}

// Rebuild sends everything anew, and removes from the server what does not belong
// there; progress may be nil.
func (p *Points) Rebuild(ctx context.Context, progress func(done, total int)) error {
	total, err := p.resend(ctx)
	if err != nil || total < 0 {
		return err
	}
	for sent := 0; ; {
		done, err := p.step(ctx)
		if done == 0 || err != nil {
			return err
		}
		if sent += done; progress != nil {
			progress(min(sent, total), total)
		}
	}
}

// resend fills the outbox with everything; -1 = there is nothing to send.
func (p *Points) resend(ctx context.Context) (int, error) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	space, dim := p.vectors.current()
	if space == 0 {
		return -1, nil
	}
	p.ready = 0
	if err := p.prepare(ctx, space, dim); err != nil {
		return 0, err
	}
	if _, err := p.reconcile(ctx, true); err != nil {
		return 0, err
	}
	if err := p.register(ctx, collectionName(p.alias, p.vectors.embedder.Name(), dim), true); err != nil {
		return 0, err
	}
	var n int
	err := p.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_outbox`).Scan(&n)
	return n, err
}

// Verify lists in words where the server does not hold what the entries ask for.
// A server that cannot be asked is such a fault too.
func (p *Points) Verify(ctx context.Context) ([]string, error) {
	if err := p.vectors.follow(ctx); err != nil {
		return nil, err
	}
	if space, _ := p.vectors.current(); space == 0 {
		return nil, nil
	}
	p.feeding.Lock()
	defer p.feeding.Unlock()
	c, err := p.reconcile(ctx, false)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isNotThere(err):
		return []string{"the Qdrant server has no collection of these memories"}, nil
	case err != nil:
		return []string{err.Error()}, nil
	}
	var said []string
	for _, f := range []struct {
		n    int
		what string
	}{{c.missing, "memories are not on the Qdrant server"}, {c.stale, "memories changed, and the Qdrant server does not know it"}, {c.strange, "points on the Qdrant server belong to no memory"}} {
		if f.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return said, nil
}
