package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"reverie/internal/store"
)

const (
	sendAtOnce   = 256 // points in one request
	scrollAtOnce = 1000
	readEvery    = time.Hour
	atOnce       = 5 * time.Second
)

// Run makes the server hold what the database holds, until ctx ends. While the server fails
// it tries ever more rarely.
func (p *Points) Run(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		begin := p.now()
		switch err := p.Complete(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			p.failed(ctx, err)
			p.nap(ctx, pause)
			pause = min(2*pause, lastPause)
		default:
			pause = firstPause
			p.nap(ctx, max(lookAgain, 10*p.now().Sub(begin)))
		}
	}
	return nil
}

// Complete makes the server hold what the database holds. What was sent before a failure
// stays.
func (p *Points) Complete(ctx context.Context) error { return p.complete(ctx, false, nil) }

// Rebuild is Complete that sends everything again; progress may be nil.
func (p *Points) Rebuild(ctx context.Context, progress func(done, total int)) error {
	return p.complete(ctx, true, progress)
}

func (p *Points) complete(ctx context.Context, all bool, progress func(done, total int)) error {
	if p.vectors == nil {
		return nil
	}
	p.feeding.Lock()
	defer p.feeding.Unlock()
	if err := p.vectors.follow(ctx); err != nil {
		return err
	}
	space, dim := p.vectors.current()
	if space == 0 {
		return nil
	}
	err := p.refresh(ctx, p.collection(dim), dim, all)
	if err == nil && all {
		clear(p.there)
	}
	for total := 0; err == nil; {
		var d differences
		if d, err = p.compareAll(ctx, space, p.there); err != nil {
			break
		}
		left := len(d.gone) + len(d.changed)
		p.waiting.Store(int64(left))
		if total = max(total, left); progress != nil && total > 0 {
			progress(total-left, total)
		}
		if left == 0 {
			p.works(ctx)
			return nil
		}
		err = p.repair(ctx, space, dim, d)
	}
	p.there = nil // what came of the last request is not known
	return err
}

// refresh reads what the server holds, if that is not known or was read long ago. Collections
// of other models are dropped.
func (p *Points) refresh(ctx context.Context, name string, dim int, again bool) error {
	// A server that failed may have come back empty.
	if lost := p.lost.Swap(false); !lost && !again && p.in == name && p.there != nil && p.health.well() && p.now().Sub(p.read) < readEvery {
		return nil
	}
	if err := p.prepare(ctx, name, dim); err != nil {
		return err
	}
	names, err := p.ours(ctx)
	if err != nil {
		return err
	}
	for _, other := range names {
		if other == name {
			continue
		}
		if err := p.server.drop(ctx, other); err != nil && !isNotThere(err) {
			return err
		}
	}
	there, strange, err := p.scroll(ctx, name)
	if err != nil {
		return err
	}
	if len(strange) > 0 {
		p.log.LogAttrs(ctx, slog.LevelInfo, "points of no memory are removed from the Qdrant server", slog.Int("points", len(strange)))
		if err := p.server.remove(ctx, name, strange); err != nil {
			return err
		}
	}
	p.in, p.there, p.read = name, there, p.now()
	return nil
}

// prepare sees that the server has the collection called name.
func (p *Points) prepare(ctx context.Context, name string, dim int) error {
	info, err := p.server.collection(ctx, name)
	there := err == nil
	if err != nil && !isNotThere(err) {
		return err
	}
	if v := info.Config.Params.Vectors; there && (v.Size != dim || v.Distance != "Cosine") {
		return fmt.Errorf("the collection %s on the Qdrant server is not one of this bot: it compares %d numbers by %q, not %d by Cosine; choose another name for memory.qdrant.collection", name, v.Size, v.Distance, dim)
	}
	if !there {
		if p.in == name {
			p.log.LogAttrs(ctx, slog.LevelWarn, "the Qdrant server has lost the memories' vectors; it gets them again", slog.String("collection", name))
		}
		if err := p.server.create(ctx, name, dim); err != nil {
			return err
		}
	}
	for _, f := range pointFields {
		if _, has := info.Schema[f[0]]; !there || !has {
			if err := p.server.indexField(ctx, name, f[0], f[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ours are the collections on the server whose names collectionName makes.
func (p *Points) ours(ctx context.Context) (names []string, err error) {
	all, err := p.server.collections(ctx)
	for _, name := range all {
		rest, ok := strings.CutPrefix(name, p.prefix+"_")
		_, dim, _ := strings.Cut(rest, "_")
		if _, err := strconv.Atoi(dim); ok && err == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// scroll reads which revisions of entries the collection called name holds, and the points
// that stand for no entry.
func (p *Points) scroll(ctx context.Context, name string) (there map[string]int64, strange []json.RawMessage, err error) {
	there = map[string]int64{}
	var from json.RawMessage
	for {
		page, err := p.server.scroll(ctx, name, from, scrollAtOnce)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range page.Points {
			if e := f.Payload.Entry; e == "" || string(f.ID) != `"`+pointID(e)+`"` {
				strange = append(strange, f.ID)
			} else {
				there[e] = f.Payload.Rev
			}
		}
		if len(page.Next) == 0 || string(page.Next) == "null" {
			return there, strange, nil
		}
		from = page.Next
	}
}

// differences are entries that are not on the server as they should be.
type differences struct {
	gone    []string // they should not be there
	changed []string // they are not there, or in another revision; the newest first
}

// compareAll compares the entries that have a vector with what is there.
func (p *Points) compareAll(ctx context.Context, space int64, there map[string]int64) (d differences, err error) {
	wanted := map[string]bool{}
	err = store.Each(ctx, p.db, func(row store.Row) error {
		var id string
		var rev int64
		if err := row.Scan(&id, &rev); err != nil {
			return err
		}
		wanted[id] = true
		if is, ok := there[id]; !ok || is != rev {
			d.changed = append(d.changed, id)
		}
		return nil
	}, `SELECT m.id, m.rev FROM memory AS m JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash
		WHERE `+indexed+` AND length(v.vec) > 0 ORDER BY m.n DESC`, space)
	if err != nil {
		return d, fmt.Errorf("compare points: %w", err)
	}
	for id := range there {
		if !wanted[id] {
			d.gone = append(d.gone, id)
		}
	}
	return d, nil
}

// repair removes what should not be there, or sends some of what changed.
func (p *Points) repair(ctx context.Context, space int64, dim int, d differences) error {
	if len(d.gone) > 0 {
		if err := p.server.remove(ctx, p.in, pointIDs(d.gone)); err != nil {
			return err
		}
		for _, id := range d.gone {
			delete(p.there, id)
		}
		return nil
	}
	var points []point
	err := store.Each(ctx, p.db, func(row store.Row) error {
		var pay pointPayload
		var vec []byte
		if err := row.Scan(&pay.Entry, &pay.Rev, &pay.Scope, &pay.State, &pay.At, &vec); err != nil {
			return err
		}
		p.there[pay.Entry] = pay.Rev
		code, err := decodeVector(vec, dim)
		if err != nil || code == nil {
			return nil // a damaged one is made again, and missed when the server is read next
		}
		vector := make([]int, dim)
		for i, c := range code {
			vector[i] = int(c)
		}
		points = append(points, point{pointID(pay.Entry), vector, pay})
		return nil
	}, `SELECT m.id, m.rev, m.scope, m.state, m.observed_at, v.vec FROM json_each(?) AS j CROSS JOIN memory AS m ON m.id = j.value
		JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash WHERE `+indexed, inJSON(d.changed[:min(len(d.changed), sendAtOnce)]), space)
	if err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	if len(points) == 0 {
		return nil
	}
	return p.server.upsert(ctx, p.in, points)
}

func pointIDs(entries []string) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = pointID(e)
	}
	return ids
}

// leave removes entries that were forgotten from every collection, or else Complete does when
// the server can be reached.
func (p *Points) leave(ctx context.Context, entries []string) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), atOnce, fmt.Errorf("no answer within %s", atOnce))
	defer cancel()
	names, err := p.ours(ctx)
	for _, name := range names {
		if e := p.server.remove(ctx, name, pointIDs(entries)); e != nil && !isNotThere(e) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		p.failed(ctx, err)
		p.log.LogAttrs(ctx, slog.LevelWarn, "what was forgotten is still on the Qdrant server, where nobody finds it; it leaves when the server can be reached", slog.String("err", err.Error()))
		p.Wake()
	}
}
