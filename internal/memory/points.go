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
	"strconv"
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
}

// Points finds the nearest vectors with a Qdrant server. The database stays the
// truth: the server's points are compared with it by entry and revision, after each
// change and once an hour, and what the server says is only where to look. It never gets
// a word of an entry. It is safe for concurrent use, also beside other processes.
type Points struct {
	waker
	db       *sql.DB
	vectors  *Vectors
	server   *qdrant
	prefix   string // of the collections
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	health   health
	suspect  atomic.Bool // the server failed: it may have come back empty

	feeding sync.Mutex       // guards the next three, and a comparison
	in      string           // the collection that there was read from
	there   map[string]int64 // revisions on the server, by pointID; nil = to be read
	read    time.Time        // when there was
}

// errAway says that the server is of no use at the moment.
var errAway = errors.New("the Qdrant server cannot be searched")

const (
	sendAtOnce   = 256 // points in one request
	scrollAtOnce = 1000
	readEvery    = time.Hour
	atOnce       = 5 * time.Second // how long a forgetting waits for the server
)

// OpenPoints asks the server for nothing yet.
func OpenPoints(c PointsConfig) *Points {
	p := &Points{waker: newWaker(), db: c.DB, vectors: c.Vectors, server: newQdrant(c.URL, c.Key), prefix: c.Collection,
		patience: cmp.Or(c.Patience, 500*time.Millisecond), log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: time.Now}
	p.health = health{log: p.log, bad: "the Qdrant server cannot be used; memory is searched by words until it can",
		good: "the Qdrant server can be used again"}
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
func (p *Points) collection(dim int) string {
	return collectionName(p.prefix, p.vectors.embedder.Name(), dim)
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

// nearest implements nearer. The server proposes; how near an entry is, whose it
// is and whether it counts is said by the database. What stands beside a near one in its
// conversation may be nearer together with it, and is looked at too.
func (p *Points) nearest(ctx context.Context, q []float32, w wanted, k int) ([]Likeness, error) {
	if err := p.vectors.follow(ctx); err != nil {
		return nil, err
	}
	_, dim := p.vectors.current()
	if len(w.scopes) == 0 || len(q) != dim || unit(q) == nil {
		return nil, nil
	}
	found, err := p.ask(ctx, p.collection(dim), q, w, k)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for _, f := range found {
		ids = append(ids, f.Payload.Entry)
	}
	entries, err := store.Column[int64](ctx, p.db, `SELECT m.n FROM json_each(?) AS j JOIN memory AS m ON m.id = j.value`, inJSON(ids))
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	if entries, err = p.withBeside(ctx, entries); err != nil {
		return nil, err
	}
	near, err := p.likeness(ctx, q, entries, func(e *vectorEntry) bool {
		return slices.Contains(w.scopes, e.scope) && w.takes(e)
	})
	return best(near, k), err
}

// ask has the server search. A server that failed just now is not waited for.
func (p *Points) ask(ctx context.Context, collection string, q []float32, w wanted, limit int) ([]point, error) {
	if p.health.resting(p.now()) {
		return nil, errAway
	}
	within, cancel := context.WithTimeoutCause(ctx, p.patience, fmt.Errorf("no answer within %s", p.patience))
	defer cancel()
	found, err := p.server.query(within, collection, q, w, limit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		p.failed(err)
		return nil, errAway
	}
	p.health.works()
	return found, nil
}

// failed notes that the server is of no use. Complete finds out what is wrong, and mends it.
func (p *Points) failed(err error) {
	p.health.failed(p.now(), err)
	p.suspect.Store(true)
	p.Wake()
}

// withBeside adds to entries those that stand next to them in their conversations.
func (p *Points) withBeside(ctx context.Context, entries []int64) ([]int64, error) {
	all, err := store.Column[int64](ctx, p.db, `SELECT value FROM json_each(?1) UNION SELECT m.n FROM json_each(?1) AS j
		CROSS JOIN memory AS h ON h.n = j.value CROSS JOIN memory AS m INDEXED BY memory_by_conversation
		ON m.conversation = h.conversation AND m.conversation <> '' AND m.scope = h.scope AND m.seq BETWEEN h.seq - 1 AND h.seq + 1`, inJSON(entries))
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return all, nil
}

// compare implements nearer.
func (p *Points) compare(ctx context.Context, q []float32, entries []int64) ([]Likeness, error) {
	return p.likeness(ctx, q, entries, func(*vectorEntry) bool { return true })
}

// likeness says how near to q those of the entries are that have a vector and are wanted.
func (p *Points) likeness(ctx context.Context, q []float32, entries []int64, wants func(*vectorEntry) bool) (out []Likeness, err error) {
	beside, err := p.withBeside(ctx, entries)
	if err != nil {
		return nil, err
	}
	all, err := p.vectors.read(ctx, `WHERE m.n IN (SELECT value FROM json_each(?)) AND `+indexed+`
		ORDER BY m.scope, m.conversation, m.seq, m.n`, inJSON(beside))
	if err != nil {
		return nil, err
	}
	_, dim := p.vectors.current()
	var order conversations
	for _, s := range all {
		if s.vec, _ = decodeVector(s.blob, dim); s.vec != nil && s.there {
			order = append(order, &s.vectorEntry)
		}
	}
	for i, e := range order {
		if slices.Contains(entries, e.n) && wants(e) {
			out = append(out, order.likeness(unit(q), i))
		}
	}
	return out, nil
}

// Line says in one line for people how the server does, with times in their zone.
func (p *Points) Line(zone *time.Location) i18n.Text {
	if since, _ := p.health.state(); !since.IsZero() {
		return i18n.New("why.qdrant_gone", "at", since.In(zone).Format("2006-01-02 15:04"))
	}
	return i18n.New("why.qdrant")
}

// Probe asks the server whether it can be used.
func (p *Points) Probe(ctx context.Context) error {
	_, err := p.ours(ctx)
	return err
}

// Run makes the server hold what the database holds, until ctx ends. While the server fails
// it tries ever more rarely.
func (p *Points) Run(ctx context.Context) error {
	return p.repeat(ctx, func() (time.Duration, error) { return lookAgain, p.Complete(ctx) })
}

// Complete makes the server hold what the database holds. What was sent before a failure
// stays.
func (p *Points) Complete(ctx context.Context) error { return p.complete(ctx, false) }

// Rebuild is Complete that sends everything again.
func (p *Points) Rebuild(ctx context.Context) error { return p.complete(ctx, true) }

func (p *Points) complete(ctx context.Context, again bool) error {
	if p.vectors == nil {
		return nil
	}
	p.feeding.Lock()
	defer p.feeding.Unlock()
	err := p.vectors.follow(ctx)
	if space, dim := p.vectors.current(); err == nil && space != 0 {
		err = p.send(ctx, space, dim, again)
	}
	switch {
	case err == nil:
		p.health.works()
	case ctx.Err() == nil:
		p.failed(err)
	}
	if err != nil {
		p.there = nil // what came of the last request is not known
	}
	return err
}

func (p *Points) send(ctx context.Context, space int64, dim int, again bool) error {
	if err := p.refresh(ctx, p.collection(dim), dim); err != nil {
		return err
	}
	for id := range p.there {
		if again {
			p.there[id] = -1
		}
	}
	for {
		gone, changed, err := p.differences(ctx, space)
		switch {
		case err != nil:
			return err
		case len(gone) > 0:
			if err := p.server.remove(ctx, p.in, gone); err != nil {
				return err
			}
			for _, id := range gone {
				delete(p.there, id)
			}
		case len(changed) == 0:
			return nil
		default:
			if err := p.sendSome(ctx, space, dim, changed[:min(len(changed), sendAtOnce)]); err != nil {
				return err
			}
		}
	}
}

// refresh reads what the server holds, if that is not known or was read long ago. Collections
// of other models are dropped.
func (p *Points) refresh(ctx context.Context, name string, dim int) error {
	if suspect := p.suspect.Swap(false); !suspect && p.in == name && p.there != nil && p.now().Sub(p.read) < readEvery {
		return nil
	}
	names, err := p.ours(ctx)
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
		if page, err = p.server.scroll(ctx, name, page.Next, scrollAtOnce); err != nil {
			return err
		}
		for _, f := range page.Points {
			there[f.ID] = f.Payload.Rev
		}
		if len(page.Next) == 0 || string(page.Next) == "null" {
			p.in, p.there, p.read = name, there, p.now()
			return nil
		}
	}
}

// differences compares the entries that have a vector with what is there: points that should
// not be there, and entries that are not there, or in another revision; the newest first.
func (p *Points) differences(ctx context.Context, space int64) (gone, changed []string, err error) {
	wanted := map[string]bool{}
	err = store.Each(ctx, p.db, func(row store.Row) error {
		var entry string
		var rev int64
		if err := row.Scan(&entry, &rev); err != nil {
			return err
		}
		id := pointID(entry)
		wanted[id] = true
		if is, ok := p.there[id]; !ok || is != rev {
			changed = append(changed, entry)
		}
		return nil
	}, `SELECT m.id, m.rev FROM memory AS m JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash
		WHERE `+indexed+` AND length(v.vec) > 0 ORDER BY m.n DESC`, space)
	if err != nil {
		return nil, nil, fmt.Errorf("compare points: %w", err)
	}
	for id := range p.there {
		if !wanted[id] {
			gone = append(gone, id)
		}
	}
	return gone, changed, nil
}

// sendSome sends entries as they are now.
func (p *Points) sendSome(ctx context.Context, space int64, dim int, entries []string) error {
	var points []point
	err := store.Each(ctx, p.db, func(row store.Row) error {
		var pay pointPayload
		var blob []byte
		if err := row.Scan(&pay.Entry, &pay.Rev, &pay.Scope, &pay.State, &pay.At, &blob); err != nil {
			return err
		}
		id := pointID(pay.Entry)
		p.there[id] = pay.Rev
		// A damaged one is made again, and missed when the server is read next.
		if vector, _ := decodeVector(blob, dim); vector != nil {
			points = append(points, point{id, vector, pay})
		}
		return nil
	}, `SELECT m.id, m.rev, m.scope, m.state, m.observed_at, v.vec FROM json_each(?) AS j CROSS JOIN memory AS m ON m.id = j.value
		JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash WHERE `+indexed, inJSON(entries), space)
	if err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	if len(points) == 0 {
		return nil
	}
	return p.server.upsert(ctx, p.in, points)
}

// leave removes entries that were forgotten from every collection, or else Complete does when
// the server can be reached.
func (p *Points) leave(ctx context.Context, entries []string) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), atOnce, fmt.Errorf("no answer within %s", atOnce))
	defer cancel()
	names, err := p.ours(ctx)
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = pointID(e)
	}
	for _, name := range names {
		err = errors.Join(err, p.server.remove(ctx, name, ids))
	}
	if err != nil {
		p.failed(err)
		p.log.Warn("what was forgotten is still on the Qdrant server, where nobody finds it; it leaves when the server can be reached", "err", err)
	}
}
