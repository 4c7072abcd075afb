package memory

import (
	"cmp"
	"context"
	"crypto/sha1"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// PointsConfig says which server finds vectors.
type PointsConfig struct {
	DB *sql.DB // with the tables of the migrations; the caller closes it
	// Vectors are those that the server gets, of the same database. nil = nothing is sent
	// or searched; what is forgotten is removed from the server all the same.
	Vectors    *Vectors
	URL        string        // of the server's REST interface
	Key        string        // "" = the server asks for none
	Collection string        // the names of the collections begin with it
	Patience   time.Duration // how long a question waits for the server; 0 = 500 ms
	Log        *slog.Logger  // nil = silent
	Now        func() time.Time
}

// Points finds the nearest vectors with a Qdrant server. The database stays the
// truth: the server's points are compared with it by entry and revision, after each
// change and once an hour, and what the server says is only where to look. It never gets
// a word of an entry. It is safe for concurrent use, also beside other processes.
type Points struct {
	db       *sql.DB
	vectors  *Vectors
	server   *qdrant
	prefix   string // of the collections
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	nap      func(context.Context, time.Duration) // Run's, until Wake
	wake     chan struct{}

	feeding sync.Mutex       // guards the next three, and a comparison
	in      string           // the collection that there was read from
	there   map[string]int64 // revisions of the entries on the server; nil = to be read
	read    time.Time        // when there was

	waiting atomic.Int64 // entries that were not as they should be, at the last comparison
	lost    atomic.Bool  // a question found no collection

	health health
}

// errAway says that the server is of no use at the moment.
var errAway = errors.New("the Qdrant server cannot be searched")

// OpenPoints asks the server for nothing yet.
func OpenPoints(c PointsConfig) (*Points, error) {
	p := &Points{db: c.DB, vectors: c.Vectors, server: newQdrant(c.URL, c.Key), prefix: c.Collection, patience: cmp.Or(c.Patience, 500*time.Millisecond),
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: c.Now, wake: make(chan struct{}, 1)}
	p.nap = func(ctx context.Context, d time.Duration) { pauseFor(ctx, d, p.wake) }
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// Wake tells Run that there may be something to do. It never blocks.
func (p *Points) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pointID is what the server calls an entry: a UUID of version 5, the same whenever it is made.
func pointID(entry string) string {
	space := [16]byte{0x5e, 0x1d, 0x0c, 0x8a, 0x70, 0x2b, 0x4f, 0x39, 0x9c, 0x44, 0xb3, 0x6e, 0x21, 0xd7, 0x58, 0x0f}
	u := sha1.Sum(append(space[:], entry...))
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// collectionName is that of the vectors of model with dim numbers. Between prefix and dim it
// has no "_", so that no other prefix makes the same name.
func collectionName(prefix, model string, dim int) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, model)
	if plain != model || len(plain) > 100 { // two models must not share one
		sum := sha1.Sum([]byte(model))
		plain = fmt.Sprintf("%s-%x", plain[:min(len(plain), 100)], sum[:4])
	}
	return fmt.Sprintf("%s_%s_%d", prefix, plain, dim)
}

// collection is that of the present vectors.
func (p *Points) collection(dim int) string {
	return collectionName(p.prefix, p.vectors.embedder.Name(), dim)
}

// nearest implements nearer. The server proposes; how near an entry is, whose it
// is and whether it counts is said by the database. What stands beside a near one in its
// conversation may be nearer together with it, and is looked at too.
func (p *Points) nearest(ctx context.Context, q []float32, w wanted, k int) ([]Likeness, error) {
	if err := p.vectors.follow(ctx); err != nil {
		return nil, err
	}
	space, dim := p.vectors.current()
	if len(q) == 0 || k <= 0 || len(w.scopes) == 0 || len(q) != dim || unit(q) == nil {
		return nil, nil
	}
	found, err := p.ask(ctx, p.collection(dim), q, w, k)
	if err != nil {
		return nil, err
	}
	entries, err := p.known(ctx, found[:min(len(found), k)], w)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	beside, err := p.beside(ctx, space, entries)
	if err != nil {
		return nil, err
	}
	all, err := p.likeness(ctx, q, slices.Concat(entries, beside), &w)
	if err != nil {
		return nil, err
	}
	near := make([]Likeness, 0, len(all))
	for _, l := range all {
		near = append(near, l)
	}
	return best(near, k), nil
}

// ask has the server search. A server that failed just now is not waited for.
func (p *Points) ask(ctx context.Context, collection string, q []float32, w wanted, limit int) ([]held, error) {
	if p.health.resting(p.now()) {
		return nil, errAway
	}
	within, cancel := context.WithTimeoutCause(ctx, p.patience, fmt.Errorf("no answer within %s", p.patience))
	defer cancel()
	found, err := p.server.query(within, collection, q, w, limit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isNotThere(err): // there is none yet, or none any more
		p.lost.Store(true)
		p.Wake()
		return nil, errAway
	case err != nil:
		p.failed(ctx, err)
		p.Wake() // to find out what is wrong, and mend it
		return nil, errAway
	}
	p.works(ctx)
	return found, nil
}

// known are the entries that points stand for. A point that says it is of
// another scope than was asked for is not looked at any further.
func (p *Points) known(ctx context.Context, found []held, w wanted) ([]int64, error) {
	ids := make([]string, 0, len(found))
	for _, f := range found {
		if slices.Contains(w.scopes, f.Payload.Scope) {
			ids = append(ids, f.Payload.Entry)
		}
	}
	return p.numbers(ctx, `SELECT m.n FROM json_each(?) AS j JOIN memory AS m ON m.id = j.value`, inJSON(ids))
}

// beside are the entries that stand before and after entries in their
// conversations and have a vector.
func (p *Points) beside(ctx context.Context, space int64, entries []int64) ([]int64, error) {
	next := func(compare, order string) string {
		return `SELECT (SELECT m.n FROM memory AS m INDEXED BY memory_by_conversation WHERE m.conversation = h.conversation AND m.conversation <> '' AND m.scope = h.scope
			AND (m.seq, m.n) ` + compare + ` (h.seq, h.n) AND ` + indexed + ` AND EXISTS (SELECT 1 FROM memory_vector AS v WHERE v.space = ` + fmt.Sprint(space) + ` AND v.hash = m.hash AND length(v.vec) > 0)
			ORDER BY m.seq ` + order + `, m.n ` + order + ` LIMIT 1) AS n FROM here AS h`
	}
	return p.numbers(ctx, `WITH here AS MATERIALIZED (SELECT m.n, m.scope, m.conversation, m.seq FROM json_each(?) AS j CROSS JOIN memory AS m ON m.n = j.value WHERE m.conversation <> '')
		SELECT n FROM (`+next("<", "DESC")+` UNION `+next(">", "ASC")+`) WHERE n IS NOT NULL`, inJSON(entries))
}

// numbers reads a column of numbers. The query gets given, a list in JSON.
func (p *Points) numbers(ctx context.Context, query, given string) ([]int64, error) {
	out, err := store.Column[int64](ctx, p.db, query, given)
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return out, nil
}

// compare implements nearer.
func (p *Points) compare(ctx context.Context, q []float32, entries []int64) (map[int64]Likeness, error) {
	if _, dim := p.vectors.current(); len(q) != dim || len(entries) == 0 {
		return nil, nil
	}
	return p.likeness(ctx, q, entries, nil)
}

// likeness says how near to q those of the entries are that have a vector and, if
// it is said, are wanted.
func (p *Points) likeness(ctx context.Context, q []float32, entries []int64, w *wanted) (map[int64]Likeness, error) {
	space, dim := p.vectors.current()
	if q = unit(q); q == nil {
		return nil, nil
	}
	beside, err := p.beside(ctx, space, entries)
	if err != nil {
		return nil, err
	}
	scopes, err := p.stored(ctx, dim, slices.Concat(entries, beside))
	if err != nil {
		return nil, err
	}
	asked := make(map[int64]bool, len(entries))
	for _, n := range entries {
		asked[n] = true
	}
	out := make(map[int64]Likeness, len(entries))
	for scope, order := range scopes {
		if w != nil && !slices.Contains(w.scopes, scope) {
			continue
		}
		for i, e := range order {
			if asked[e.n] && (w == nil || w.takes(e)) {
				out[e.n] = order.likeness(q, i)
			}
		}
	}
	return out, nil
}

// stored are entries with their vectors, as the database has them.
func (p *Points) stored(ctx context.Context, dim int, entries []int64) (map[Scope]conversations, error) {
	all, err := p.vectors.read(ctx, `WHERE m.n IN (SELECT value FROM json_each(?)) AND `+indexed+`
		ORDER BY m.conversation, m.seq, m.n`, inJSON(entries))
	if err != nil {
		return nil, err
	}
	out := map[Scope]conversations{}
	for _, s := range all {
		code, err := decodeVector(s.blob, dim)
		if err != nil || code == nil || !s.there {
			continue // it has none yet, or a damaged one: its words have to do
		}
		s.vec = unit(code)
		out[s.scope] = append(out[s.scope], &s.vectorEntry)
	}
	return out, nil
}

func (p *Points) failed(ctx context.Context, err error) {
	if p.health.down(p.now(), err, false) {
		p.log.LogAttrs(ctx, slog.LevelWarn, "the Qdrant server cannot be used; memory is searched by words until it can", slog.String("err", err.Error()))
	}
}

func (p *Points) works(ctx context.Context) {
	if p.health.up() {
		p.log.LogAttrs(ctx, slog.LevelInfo, "the Qdrant server can be used again")
		p.Wake()
	}
}

// PointsStatus says how the server does.
type PointsStatus struct {
	Server      string    `json:"server"`
	Waiting     int       `json:"waiting"`              // changes that it has still to be told
	Unreachable time.Time `json:"unreachable,omitzero"` // since when; zero = it is not
	Reason      string    `json:"reason,omitempty"`     // of that, for the operator
}

// Status says how the server does, as far as this process knows. It does not ask it.
func (p *Points) Status() PointsStatus {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	return PointsStatus{Server: p.server.base, Waiting: int(p.waiting.Load()), Unreachable: p.health.since, Reason: p.health.reason}
}

// Line is the status in one line for people, with times in their zone.
func (s PointsStatus) Line(zone *time.Location) i18n.Text {
	at, gone := s.Unreachable.In(zone).Format("2006-01-02 15:04"), !s.Unreachable.IsZero()
	switch {
	case gone && s.Waiting > 0:
		return i18n.New("why.qdrant_gone_waiting", "at", at, "count", s.Waiting)
	case gone:
		return i18n.New("why.qdrant_gone", "at", at)
	case s.Waiting > 0:
		return i18n.New("why.qdrant_waiting", "count", s.Waiting)
	}
	return i18n.New("why.qdrant")
}

// Probe asks the server whether it can be used, and how many points it holds for us.
func (p *Points) Probe(ctx context.Context) (points int, err error) {
	names, err := p.ours(ctx)
	for _, name := range names {
		info, err := p.server.collection(ctx, name)
		if err != nil && !isNotThere(err) {
			return 0, err
		}
		points += info.Points
	}
	return points, err
}
