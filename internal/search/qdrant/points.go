package qdrant

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/search/vector"
)

// Config says which server finds vectors.
type Config struct {
	// Vectors are those that the server gets. nil = none; what is forgotten is removed all the same.
	Vectors    *vector.Vectors
	URL        string        // of the server's REST interface
	Key        string        // "" = the server asks for none
	Collection string        // the names of the collections begin with it
	Patience   time.Duration // how long a question waits for the server; 0 = 500 ms
	Log        *slog.Logger  // nil = silent
}

// Points finds the nearest vectors with a Qdrant server. The database stays the truth: the server's points are
// compared with it by id and revision, after each change and once an hour, and it only says where to look.
// It never gets a word of a text. It is safe for concurrent use, also beside other processes.
type Points struct {
	vector.Waker
	vectors  *vector.Vectors
	server   *client
	prefix   string // of the collections
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	health   *vector.Health
	suspect  atomic.Bool // the server failed: it may have come back empty

	syncMu    sync.Mutex       // guards the next three, and a comparison
	synced    string           // the collection that there was read from
	revisions map[string]int64 // revisions on the server, by pointID; nil = to be read
	readAt    time.Time        // when there was
}

const (
	upsertBatch     = 256 // points in one request
	scrollBatch     = 1000
	refreshInterval = time.Hour
	forgetTimeout   = 5 * time.Second // how long a forgetting waits for the server
)

// Open asks the server for nothing yet.
func Open(c Config) *Points {
	p := &Points{Waker: vector.NewWaker(), vectors: c.Vectors, server: newClient(c.URL, c.Key), prefix: c.Collection,
		patience: cmp.Or(c.Patience, 500*time.Millisecond), log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: time.Now}
	p.health = vector.NewHealth(p.log, "the Qdrant server cannot be used; memory is searched by words until it can",
		"the Qdrant server can be used again")
	return p
}

// pointID is what the server calls an entry: a UUID of version 5, the same whenever it is made.
func pointID(entry string) string {
	space := [16]byte{0x5e, 0x1d, 0x0c, 0x8a, 0x70, 0x2b, 0x4f, 0x39, 0x9c, 0x44, 0xb3, 0x6e, 0x21, 0xd7, 0x58, 0x0f}
	u := sha1.Sum(append(space[:], entry...))
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// collectionName is that of the vectors of model with dim numbers.
func collectionName(prefix, model string, dim int) string {
	sum := sha1.Sum([]byte(model))
	return fmt.Sprintf("%s_%x_%d", prefix, sum[:6], dim)
}

// collection is that of the present vectors.
func (p *Points) collection(dim int) string { return collectionName(p.prefix, p.vectors.Model(), dim) }

// ours are the collections on the server whose names collectionName makes.
func (p *Points) ownCollections(ctx context.Context) (names []string, err error) {
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

// Nearest implements search.Server. The server proposes; what it says of an entry, the database decides.
func (p *Points) Nearest(ctx context.Context, q []float32, w vector.Filter, k int) ([]vector.Similarity, error) {
	if err := p.vectors.Follow(ctx); err != nil {
		return nil, err
	}
	space := p.vectors.Space()
	if len(w.Scopes) == 0 || !space.Fits(q) {
		return nil, nil
	}
	found, err := p.queryServer(ctx, p.collection(space.Dim), q, w, k)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for _, f := range found {
		ids = append(ids, f.Payload.ID)
	}
	return p.vectors.NearestAmong(ctx, q, ids, w, k)
}

// ask has the server search. One that failed just now is not waited for.
func (p *Points) queryServer(ctx context.Context, collection string, q []float32, w vector.Filter, limit int) ([]point, error) {
	if p.health.CoolingDown(p.now()) {
		return nil, vector.ErrUnavailable
	}
	within, cancel := context.WithTimeoutCause(ctx, p.patience, fmt.Errorf("no answer within %s", p.patience))
	defer cancel()
	found, err := p.server.query(within, collection, q, w, limit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		p.failed(err)
		return nil, vector.ErrUnavailable
	}
	p.health.Succeeded()
	return found, nil
}

// failed notes that the server is of no use. Complete finds out what is wrong, and mends it.
func (p *Points) failed(err error) {
	p.health.Failed(p.now(), err)
	p.suspect.Store(true)
	p.Wake()
}

// Compare implements search.Server.
func (p *Points) Compare(ctx context.Context, q []float32, docs []int64) ([]vector.Similarity, error) {
	return p.vectors.CompareStored(ctx, q, docs)
}

// Line says in one line for people how the server does, with times in their zone.
func (p *Points) Line(zone *time.Location) i18n.Text {
	if since, _ := p.health.State(); !since.IsZero() {
		return i18n.New("why.qdrant_gone", "at", since.In(zone).Format("2006-01-02 15:04"))
	}
	return i18n.New("why.qdrant")
}

// Probe asks the server whether it can be used.
func (p *Points) Probe(ctx context.Context) error {
	_, err := p.ownCollections(ctx)
	return err
}

// Run calls Complete until ctx ends, ever more rarely while the server fails.
func (p *Points) Run(ctx context.Context) error {
	return p.Repeat(ctx, func() (time.Duration, error) { return vector.PollInterval, p.Complete(ctx) })
}

// Complete makes the server hold what the database holds. What was sent before a failure stays.
func (p *Points) Complete(ctx context.Context) error { return p.syncServer(ctx, false) }

// Rebuild is Complete that sends everything again: an undone dream gives entries an earlier revision
// back, and a server that was away meanwhile may hold another state under it.
func (p *Points) Rebuild(ctx context.Context) error {
	p.suspect.Store(true)
	return p.syncServer(ctx, true)
}

func (p *Points) syncServer(ctx context.Context, again bool) error {
	if p.vectors == nil {
		return nil
	}
	p.syncMu.Lock()
	defer p.syncMu.Unlock()
	err := p.vectors.Follow(ctx)
	if space := p.vectors.Space(); err == nil && space.No != 0 {
		err = p.syncPoints(ctx, space, again)
	}
	switch {
	case err == nil:
		p.health.Succeeded()
	case ctx.Err() == nil:
		p.failed(err)
	}
	if err != nil {
		p.revisions = nil // what came of the last request is not known
	}
	return err
}

func (p *Points) syncPoints(ctx context.Context, space vector.Space, again bool) error {
	if err := p.refresh(ctx, p.collection(space.Dim), space.Dim); err != nil {
		return err
	}
	for id := range p.revisions {
		if again {
			p.revisions[id] = -1
		}
	}
	for {
		gone, changed, err := p.differences(ctx, space)
		switch {
		case err != nil:
			return err
		case len(gone) > 0:
			if err := p.server.remove(ctx, p.synced, gone); err != nil {
				return err
			}
			for _, id := range gone {
				delete(p.revisions, id)
			}
		case len(changed) == 0:
			return nil
		default:
			if err := p.upsertDocs(ctx, space, changed[:min(len(changed), upsertBatch)]); err != nil {
				return err
			}
		}
	}
}

// refresh reads what the server holds, unless that was read lately, and drops collections of other models.
func (p *Points) refresh(ctx context.Context, name string, dim int) error {
	if suspect := p.suspect.Swap(false); !suspect && p.synced == name && p.revisions != nil && p.now().Sub(p.readAt) < refreshInterval {
		return nil
	}
	names, err := p.ownCollections(ctx)
	if err != nil {
		return err
	}
	for _, other := range names {
		if other != name {
			if err := p.server.drop(ctx, other); err != nil {
				return err
			}
		}
	}
	if !slices.Contains(names, name) {
		if err := p.server.create(ctx, name, dim); err != nil {
			return err
		}
	}
	there := map[string]int64{}
	for page := (pointPage{}); ; {
		if page, err = p.server.scroll(ctx, name, page.Next, scrollBatch); err != nil {
			return err
		}
		for _, f := range page.Points {
			there[f.ID] = f.Payload.Rev
		}
		if len(page.Next) == 0 || string(page.Next) == "null" {
			p.synced, p.revisions, p.readAt = name, there, p.now()
			return nil
		}
	}
}

// differences lists points that should not be there, and entries that are not there in their revision, the newest first.
func (p *Points) differences(ctx context.Context, space vector.Space) (gone, changed []string, err error) {
	wanted := map[string]bool{}
	err = p.vectors.Revisions(ctx, space, func(entry string, rev int64) {
		id := pointID(entry)
		wanted[id] = true
		if is, ok := p.revisions[id]; !ok || is != rev {
			changed = append(changed, entry)
		}
	})
	for id := range p.revisions {
		if !wanted[id] {
			gone = append(gone, id)
		}
	}
	return gone, changed, err
}

// sendSome sends entries as they are now.
func (p *Points) upsertDocs(ctx context.Context, space vector.Space, entries []string) error {
	all, err := p.vectors.Points(ctx, space, entries)
	if err != nil {
		return err
	}
	var points []point
	for _, e := range all {
		id := pointID(e.ID)
		p.revisions[id] = e.Rev
		points = append(points, point{id, e.Vector, e})
	}
	if len(points) > 0 {
		err = p.server.upsert(ctx, p.synced, points)
	}
	return err
}

// Forget removes entries from every collection, or else Complete does when the server can be reached.
func (p *Points) Forget(ctx context.Context, entries []string) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), forgetTimeout, fmt.Errorf("no answer within %s", forgetTimeout))
	defer cancel()
	names, err := p.ownCollections(ctx)
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = pointID(e)
	}
	for _, name := range names {
		err = errors.Join(err, p.server.remove(ctx, name, ids))
	}
	if err != nil {
		p.failed(err)
		p.log.Warn("what was forgotten is still on the Qdrant server, where nobody finds it; "+
			"it leaves when the server can be reached", "err", err)
	}
}
