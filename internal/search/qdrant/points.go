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

// Config holds the server's address and settings.
type Config struct {
	// Vectors are sent to the server. nil = none; Forget works nevertheless.
	Vectors    *vector.Vectors
	URL        string        // of the server's REST interface
	Key        string        // "" = the server needs none
	Collection string        // prefix of the collection names
	Patience   time.Duration // timeout of a query; 0 = 500 ms
	Log        *slog.Logger  // nil = silent
}

// Points searches vectors with a Qdrant server. The database is the truth: after each change, and
// once an hour, the server's points are compared with it by id and revision. The server only
// proposes documents. It never gets text. It is safe for concurrent use, also beside other
// processes.
type Points struct {
	vector.Waker
	vectors  *vector.Vectors
	server   *client
	prefix   string // of collection names
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	health   *vector.Health
	suspect  atomic.Bool // the server failed and may have lost its points

	syncMu    sync.Mutex       // held during a synchronisation; guards the fields below
	synced    string           // the collection of revisions
	revisions map[string]int64 // revisions on the server, by pointID; nil = unknown
	readAt    time.Time        // when revisions was read
}

const (
	upsertBatch     = 256 // points per request
	scrollBatch     = 1000
	refreshInterval = time.Hour
	forgetTimeout   = 5 * time.Second
)

// Open does not connect to the server.
func Open(c Config) *Points {
	p := &Points{Waker: vector.NewWaker(), vectors: c.Vectors, server: newClient(c.URL, c.Key), prefix: c.Collection,
		patience: cmp.Or(c.Patience, 500*time.Millisecond), log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: time.Now}
	p.health = vector.NewHealth(p.log, "the Qdrant server cannot be used; memory is searched by words until it can",
		"the Qdrant server can be used again")
	return p
}

// pointID is the server's id of an entry: a UUID of version 5.
func pointID(entry string) string {
	space := [16]byte{0x5e, 0x1d, 0x0c, 0x8a, 0x70, 0x2b, 0x4f, 0x39, 0x9c, 0x44, 0xb3, 0x6e, 0x21, 0xd7, 0x58, 0x0f}
	u := sha1.Sum(append(space[:], entry...))
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// collectionName is the collection for vectors of model with length dim.
func collectionName(prefix, model string, dim int) string {
	sum := sha1.Sum([]byte(model))
	return fmt.Sprintf("%s_%x_%d", prefix, sum[:6], dim)
}

// collection is the collection for the current model.
func (p *Points) collection(dim int) string { return collectionName(p.prefix, p.vectors.Model(), dim) }

// ownCollections lists the server's collections that collectionName may have named.
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

// Nearest implements search.Server. The server proposes documents; the database decides.
func (p *Points) Nearest(ctx context.Context, q []float32, w vector.Filter, k int) ([]vector.Similarity, error) {
	if err := p.vectors.Follow(ctx); err != nil {
		return nil, err
	}
	space := p.vectors.Space()
	if len(w.Scopes) == 0 || !space.Fits(q) {
		return nil, nil
	}
	// A few more, because the server compares documents without their neighbours.
	found, err := p.queryServer(ctx, p.collection(space.Dim), q, w, max(k, min(5*k/2, 100)))
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for _, f := range found {
		ids = append(ids, f.Payload.ID)
	}
	return p.vectors.NearestAmong(ctx, q, ids, w, k)
}

// queryServer queries the server, unless it failed just now.
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

// failed records a failure of the server and wakes Run, which repairs it.
func (p *Points) failed(err error) {
	p.health.Failed(p.now(), err)
	p.suspect.Store(true)
	p.Wake()
}

// Compare implements search.Server.
func (p *Points) Compare(ctx context.Context, q []float32, docs []int64) ([]vector.Similarity, error) {
	return p.vectors.SimilaritiesStored(ctx, q, docs)
}

// Line describes the server's health in one line for people, with times in zone.
func (p *Points) Line(zone *time.Location) i18n.Text {
	if since, _ := p.health.State(); !since.IsZero() {
		return i18n.New("why.qdrant_gone", "at", since.In(zone).Format("2006-01-02 15:04"))
	}
	return i18n.New("why.qdrant")
}

// Probe checks whether the server can be used.
func (p *Points) Probe(ctx context.Context) error {
	_, err := p.ownCollections(ctx)
	return err
}

// Run calls Complete until ctx ends, and backs off while the server fails.
func (p *Points) Run(ctx context.Context) error {
	return p.Repeat(ctx, func() (time.Duration, error) { return vector.PollInterval, p.Complete(ctx) })
}

// Complete synchronises the server with the database. Points sent before a failure stay.
func (p *Points) Complete(ctx context.Context) error { return p.syncServer(ctx, false) }

// Rebuild sends all points again. This is needed after undoing a dream, which restores earlier
// revisions: an unreachable server may hold another state under the same revision.
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
		p.revisions = nil // the last request may have succeeded
	}
	return err
}

func (p *Points) syncPoints(ctx context.Context, space vector.Space, again bool) error {
	if err := p.prepareCollection(ctx, p.collection(space.Dim), space.Dim); err != nil {
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

// prepareCollection creates the collection if needed and reads the revisions on it. Recent
// revisions are not read again. It drops the collections of other models.
func (p *Points) prepareCollection(ctx context.Context, name string, dim int) error {
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

// differences lists points to be deleted and documents to be sent. The documents are missing or
// outdated on the server; the newest is first.
func (p *Points) differences(ctx context.Context, space vector.Space) (surplus, changed []string, err error) {
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
			surplus = append(surplus, id)
		}
	}
	return surplus, changed, err
}

// upsertDocs sends the current state of entries.
func (p *Points) upsertDocs(ctx context.Context, space vector.Space, entries []string) error {
	all, err := p.vectors.Points(ctx, space, entries)
	if err != nil || len(all) == 0 {
		return err
	}
	points := make([]point, len(all))
	for i, e := range all {
		points[i] = point{pointID(e.ID), e.Vector, e}
		p.revisions[points[i].ID] = e.Rev
	}
	return p.server.upsert(ctx, p.synced, points)
}

// Forget deletes entries from every collection. If the server cannot be reached, Complete does it
// later.
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
		p.log.Warn("forgotten memories are still on the Qdrant server, though no search returns them; "+
			"they are deleted when the server can be reached", "err", err)
	}
}
