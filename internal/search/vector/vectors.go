// Package vector compares texts by their meaning: their vectors, one for each text and model.
//
// They are in the database, as signed bytes; those of the scopes that were asked for are compared
// in memory, by chromem-go. It reads the view document and follows document_change.
package vector

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Embedder turns texts into vectors, such that texts of like meaning get vectors
// of like direction.
type Embedder interface {
	// Name tells its vectors from those of others, with which they cannot be compared.
	Name() string
	// Embed returns one vector for each text, in their order and all equally long;
	// nil for a text it can make nothing of. It fails as a whole.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Config says what vectors are made with.
type Config struct {
	DB       *sql.DB // with the tables of the migrations; the caller closes it
	Embedder Embedder
	// Patience is how long a question waits for its vector; 0 = 300 ms. Who waits
	// for nothing else, as a command does, may take longer.
	Patience time.Duration
	Log      *slog.Logger // nil = silent
}

// Vectors keeps the vectors of entries: in the database, which is the truth, and those of the scopes
// that were asked for in memory, where they are compared. It follows the journal of the entries,
// whoever changes them. It is safe for concurrent use, also beside other processes.
type Vectors struct {
	Waker
	db       *sql.DB
	embedder Embedder
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	health   *Health

	embedMu  sync.Mutex // one at a time makes vectors
	followMu sync.Mutex // one at a time reads the journal
	lastSeq  int64      // memory_op.seq up to where it was read

	mu         sync.RWMutex // guards the rest
	index      vectorIndex
	lastQuery  string    // the last question
	lastVector []float32 // its vector
}

// vectorIndex is what of the database is in memory.
type vectorIndex struct {
	space   Space
	scopes  map[trust.Readers]*collection
	entries map[int64]*vectorEntry // of all collections, by number
	waiting map[int64]bool         // entries of these scopes that have no vector yet
}

// ErrAway says that nobody can look for the nearest vectors at the moment.
var ErrUnavailable = errors.New("the vectors cannot be searched")

// Likeness is how near an entry is to a question, from -1 to 1.
type Similarity struct {
	Doc    int64   // memory.n
	Cosine float64 // of the entry's own vector
	Window float64 // of what it says together with its neighbours in the conversation; = Cosine without any
}

// Wanted says which documents are looked for.
type Filter struct {
	Scopes []trust.Readers // no scope finds nothing
	Past   bool            // those that no longer hold, too
}

func (w Filter) matches(r *vectorEntry) bool {
	return w.Past || !r.past
}

// Open reads the vectors that there are. It asks the embedder for nothing:
// Run and Complete make what is missing.
func Open(ctx context.Context, c Config) (*Vectors, error) {
	v := &Vectors{
		Waker: NewWaker(), db: c.DB, embedder: c.Embedder, patience: cmp.Or(c.Patience, 300*time.Millisecond),
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: time.Now, lastSeq: -1,
	}
	v.health = NewHealth(v.log, "embeddings cannot be made; memory is searched by words until they can", "embeddings can be made again")
	// The space of the last vectors: of which length they are now is known with
	// the next one that is made.
	var space Space
	last := c.DB.QueryRowContext(ctx, `SELECT no, dim FROM memory_space WHERE model = ? ORDER BY no DESC LIMIT 1`, c.Embedder.Name())
	err := last.Scan(&space.No, &space.Dim)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	v.reset(space)
	return v, v.Follow(ctx)
}

// reset empties the memory and begins with the vectors of a space. Who calls it holds v.following.
func (v *Vectors) reset(space Space) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index = vectorIndex{
		space: space, scopes: map[trust.Readers]*collection{}, entries: map[int64]*vectorEntry{}, waiting: map[int64]bool{},
	}
	v.lastQuery, v.lastVector = "", nil
}

// indexed are the states in which an entry can be found.
const searchableCondition = `m.state IN ('active', 'superseded', 'archived')`

const vectorColumns = `SELECT m.n, m.scope, ` + searchableCondition + ` AND m.text <> '', m.state <> 'active', m.conversation, m.seq, m.at,
		v.hash IS NOT NULL, coalesce(v.vec, x'')
	FROM document m LEFT JOIN memory_vector v ON v.hash = m.hash AND v.space = ? `

// Follow takes in what was done to the entries since it was called last.
func (v *Vectors) Follow(ctx context.Context) error {
	v.followMu.Lock()
	defer v.followMu.Unlock()
	return v.followLocked(ctx)
}

// catchUp is Follow for who holds v.following.
func (v *Vectors) followLocked(ctx context.Context) error {
	last, err := store.Value[int64](ctx, v.db, `SELECT coalesce(max(seq), 0) FROM document_change`)
	if err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	if last == v.lastSeq {
		return nil
	}
	if v.lastSeq >= 0 {
		if err := v.reload(ctx, `WHERE m.id IN (SELECT id FROM document_change WHERE seq > ? AND seq <= ?)`, v.lastSeq, last); err != nil {
			return err
		}
	}
	v.lastSeq = last
	return nil
}

// open takes in what was done to the entries, and loads those of scopes that were never asked for.
func (v *Vectors) loadScopes(ctx context.Context, scopes []trust.Readers) error {
	v.followMu.Lock()
	defer v.followMu.Unlock()
	if err := v.followLocked(ctx); err != nil {
		return err
	}
	for _, scope := range scopes {
		if v.index.scopes[scope] != nil {
			continue
		}
		// In the order in which adding is fastest.
		all, err := v.read(ctx, `WHERE m.scope = ? AND `+searchableCondition+` ORDER BY m.conversation, m.seq, m.n`, scope)
		if err != nil {
			return err
		}
		v.mu.Lock()
		if v.index.scopes[scope], err = newCollection(); err == nil {
			err = v.index.replace(ctx, all)
		}
		if err != nil {
			delete(v.index.scopes, scope)
		}
		v.mu.Unlock()
		if err != nil {
			return fmt.Errorf("read vectors: %w", err)
		}
	}
	return nil
}

// storedVector is an entry as the database has it.
type storedVector struct {
	vectorEntry
	searchable bool // it can be found
	embedded   bool // there is a vector of its text, or it is known that the model makes nothing of it
	blob       []byte
}

// read reads entries with their vectors in the present space.
func (v *Vectors) read(ctx context.Context, where string, args ...any) ([]storedVector, error) {
	all, err := store.List(ctx, v.db, func(row store.Row) (s storedVector, err error) {
		err = row.Scan(&s.n, &s.scope, &s.searchable, &s.past, &s.conversation, &s.seq, &s.observedAt, &s.embedded, &s.blob)
		return s, err
	}, vectorColumns+where, append([]any{v.Space().No}, args...)...)
	return all, store.Wrap(err, "read vectors")
}

// reload replaces what is in memory of entries. Who calls it holds v.following.
func (v *Vectors) reload(ctx context.Context, where string, args ...any) error {
	all, err := v.read(ctx, where, args...)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastQuery, v.lastVector = "", nil // it may say the same as what was forgotten
	return store.Wrap(v.index.replace(ctx, all), "read vectors")
}

// replace replaces entries of the scopes that are in memory.
func (x *vectorIndex) replace(ctx context.Context, all []storedVector) error {
	for _, s := range all {
		if err := x.drop(ctx, s.n); err != nil {
			return err
		}
		c := x.scopes[s.scope]
		if c == nil || !s.searchable {
			continue
		}
		if !s.embedded {
			x.waiting[s.n] = true
			continue
		}
		e := s.vectorEntry
		if e.vec = decodeVector(s.blob, x.space.Dim); e.vec == nil {
			continue
		}
		if err := c.add(ctx, &e); err != nil {
			return err
		}
		x.entries[e.n] = &e
	}
	return nil
}

func (x *vectorIndex) drop(ctx context.Context, n int64) error {
	delete(x.waiting, n)
	e := x.entries[n]
	if e == nil {
		return nil
	}
	delete(x.entries, n)
	return x.scopes[e.scope].remove(ctx, e)
}

// Nearest finds the k documents of w that are nearest to the vector q, by Cosine and
// Window together, nearest first. Without q there are none.
func (v *Vectors) Nearest(ctx context.Context, q []float32, w Filter, k int) ([]Similarity, error) {
	if q = unit(q); q == nil {
		return nil, nil
	}
	if err := v.loadScopes(ctx, w.Scopes); err != nil {
		return nil, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(q) != v.index.space.Dim {
		return nil, nil
	}
	var all []Similarity
	for i, scope := range w.Scopes {
		if c := v.index.scopes[scope]; c != nil && !slices.Contains(w.Scopes[:i], scope) {
			found, err := c.nearest(ctx, q, w, k, v.index.entries)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return topK(all, k), ctx.Err()
}

// Compare says how near to q those of the documents are that have a vector. It knows the entries of the scopes that nearest was asked for.
func (v *Vectors) Compare(ctx context.Context, q []float32, entries []int64) (out []Similarity, err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if q = unit(q); q == nil || len(q) != v.index.space.Dim {
		return nil, nil
	}
	for _, n := range entries {
		if e := v.index.entries[n]; e != nil {
			order := v.index.scopes[e.scope].order
			p, _ := order.position(e)
			out = append(out, order.similarity(q, p))
		}
	}
	return out, ctx.Err()
}

// sampled is how many texts Background looks at, of all scopes together.
const maxSample = 512

// Background is how near to q texts are that were taken from anywhere in scopes. It
// knows those that nearest was asked for.
func (v *Vectors) Background(q []float32, scopes []trust.Readers) (n int, mean, deviation float64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if q = unit(q); q == nil || len(q) != v.index.space.Dim {
		return 0, 0, 0
	}
	var all conversations
	for _, scope := range scopes {
		if c := v.index.scopes[scope]; c != nil {
			all = append(all, c.order...)
		}
	}
	var sum, squares float64
	for i := 0; i < len(all); i += max(1, len(all)/maxSample) {
		c := dot(q, all[i].vec)
		sum, squares, n = sum+c, squares+c*c, n+1
	}
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / float64(n)
	return n, mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))
}

// orphans are the vectors of texts that no document has.
const orphans = `hash NOT IN (SELECT hash FROM document WHERE state <> 'forgotten')`

// Forget takes the vectors of a text out of every space, unless an entry
// still says the same. hash is the one the entry had (memory.hash). It belongs into the
// transaction that empties it, after that; memory follows the journal.
func Forget(ctx context.Context, tx *sql.Tx, hash string) error {
	// Overwritten in place first: what is deleted stays readable in the file.
	for _, statement := range []string{`UPDATE memory_vector SET vec = zeroblob(length(vec))`, `DELETE FROM memory_vector`} {
		if _, err := tx.ExecContext(ctx, statement+` WHERE hash = ? AND `+orphans, hash); err != nil {
			return fmt.Errorf("forget vectors: %w", err)
		}
	}
	return nil
}
