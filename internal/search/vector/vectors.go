// Package vector compares texts by meaning, with one vector per text and model.
//
// The database stores the vectors, quantized to signed bytes. Vectors of scopes that were searched
// are compared in memory, all of them. The package reads the view document and follows
// document_change.
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

	"reverie/internal/llm/encoder"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Embedder computes vectors of texts, such that similar meanings have similar directions.
type Embedder interface {
	// Name identifies the model; vectors of different models cannot be compared.
	Name() string
	// Embed returns one vector per text, in order and of equal length; nil for a text that it
	// cannot embed. It fails as a whole.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Config holds the dependencies and settings of Vectors.
type Config struct {
	DB       *store.DB // with the tables of the migrations; the caller closes it
	Embedder Embedder
	// Patience is the timeout for the vector of a query; 0 = 300 ms. Commands, which wait for
	// nothing else, may set more.
	Patience time.Duration
	Log      *slog.Logger // nil = silent
}

// Vectors stores the vectors of documents. The database is the truth; scopes that were searched are
// loaded into memory. It follows the journal, whichever process writes it. It is safe for
// concurrent use, also beside other processes.
type Vectors struct {
	Waker
	db       *store.DB
	embedder Embedder
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
	health   *Health

	embedMu  sync.Mutex // held by the one who computes vectors
	followMu sync.Mutex // held by the one who reads the journal
	lastSeq  int64      // the last memory_op.seq that was read

	mu         sync.RWMutex // guards the rest
	index      vectorIndex
	lastQuery  string
	lastVector []float32

	sample       []code // of the last call of BackgroundStored
	sampleScopes []trust.Readers
}

// vectorIndex is the part of the vectors that is in memory.
type vectorIndex struct {
	space   Space
	scopes  map[trust.Readers]*collection
	entries map[int64]*vectorEntry // all collections, by document number
	waiting map[int64]bool         // documents of these scopes without a vector
}

// ErrUnavailable says that the vectors cannot be searched at the moment.
var ErrUnavailable = errors.New("the vectors cannot be searched")

// Similarity is the similarity of a document to a query, from -1 to 1.
type Similarity struct {
	Doc    int64   // document number
	Cosine float64 // of the document's own vector
	Window float64 // of its vector combined with its neighbours in the conversation; = Cosine without any
}

// Filter selects documents.
type Filter struct {
	Scopes []trust.Readers // without one nothing is found
	Past   bool            // include superseded and archived documents
}

func (w Filter) matches(r *vectorEntry) bool {
	return w.Past || !r.past
}

// Open returns the vectors in c.DB. It does not call the embedder: Run and Complete compute missing
// vectors.
func Open(ctx context.Context, c Config) (*Vectors, error) {
	v := &Vectors{
		Waker: NewWaker(), db: c.DB, embedder: c.Embedder, patience: cmp.Or(c.Patience, 300*time.Millisecond),
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: time.Now, lastSeq: -1,
	}
	v.health = NewHealth(v.log, "embeddings cannot be computed; memory is searched by words until they can",
		"embeddings can be computed again")
	// Start with the space of the last vectors. The next vector shows whether the length is the same.
	var space Space
	last := c.DB.QueryRowContext(ctx, `SELECT no, dim FROM embedding_model WHERE model = ? ORDER BY no DESC LIMIT 1`, v.Model())
	err := last.Scan(&space.No, &space.Dim)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	v.reset(space)
	return v, v.Follow(ctx)
}

// reset clears the memory and starts a space. The caller holds v.followMu.
func (v *Vectors) reset(space Space) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index = vectorIndex{
		space: space, scopes: map[trust.Readers]*collection{}, entries: map[int64]*vectorEntry{}, waiting: map[int64]bool{},
	}
	v.lastQuery, v.lastVector = "", nil
}

// searchableCondition selects the documents that can be found.
const searchableCondition = `m.state IN ('active', 'superseded', 'archived')`

const vectorColumns = `SELECT m.n, m.scope, ` + searchableCondition + ` AND m.text <> '', m.state <> 'active', m.conversation, m.seq, m.at,
		v.hash IS NOT NULL, coalesce(v.vec, x'')
	FROM document m LEFT JOIN embedding v ON v.hash = m.hash AND v.model = ? `

// Follow applies changes of documents since the last call.
func (v *Vectors) Follow(ctx context.Context) error {
	v.followMu.Lock()
	defer v.followMu.Unlock()
	return v.followLocked(ctx)
}

// followLocked is Follow for callers that hold v.followMu.
func (v *Vectors) followLocked(ctx context.Context) error {
	newest, err := store.Value[int64](ctx, v.db, `SELECT coalesce(max(seq), 0) FROM document_change`)
	if err != nil || newest == v.lastSeq {
		return store.Wrap(err, "read vectors")
	}
	if v.lastSeq >= 0 {
		where := `WHERE m.id IN (SELECT id FROM document_change WHERE seq > ? AND seq <= ?)`
		if err := v.reload(ctx, where, v.lastSeq, newest); err != nil {
			return err
		}
	}
	v.lastSeq = newest
	return nil
}

// loadScopes applies changes of documents and loads scopes that are not in memory.
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
		// Sorted, because then adding is fastest.
		all, err := v.read(ctx, `WHERE m.scope = ? AND `+searchableCondition+` ORDER BY m.conversation, m.seq, m.n`, scope)
		if err != nil {
			return err
		}
		v.mu.Lock()
		v.index.scopes[scope] = &collection{}
		v.index.replace(all)
		v.mu.Unlock()
	}
	return nil
}

// storedVector is a document read from the database.
type storedVector struct {
	vectorEntry
	searchable bool
	embedded   bool // its text has a vector, or the model cannot embed it
	blob       []byte
}

// read reads documents with their vectors in the current space.
func (v *Vectors) read(ctx context.Context, where string, args ...any) ([]storedVector, error) {
	return store.List(ctx, v.db, func(row store.Row) (s storedVector, err error) {
		err = row.Scan(&s.n, &s.scope, &s.searchable, &s.past, &s.conversation, &s.seq, &s.observedAt, &s.embedded, &s.blob)
		return s, err
	}, vectorColumns+where, append([]any{v.Space().No}, args...)...)
}

// reload updates documents in memory. The caller holds v.followMu.
func (v *Vectors) reload(ctx context.Context, where string, args ...any) error {
	all, err := v.read(ctx, where, args...)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastQuery, v.lastVector, v.sample = "", nil, nil // they may contain a forgotten text
	v.index.replace(all)
	return nil
}

// replace updates documents of loaded scopes.
func (x *vectorIndex) replace(all []storedVector) {
	for _, s := range all {
		x.drop(s.n)
		c := x.scopes[s.scope]
		if c == nil || !s.searchable {
			continue
		}
		if !s.embedded {
			x.waiting[s.n] = true
			continue
		}
		e := s.vectorEntry
		if e.vec = newCode(s.blob, x.space.Dim); e.vec.numbers == nil {
			continue
		}
		c.add(&e)
		x.entries[e.n] = &e
	}
}

func (x *vectorIndex) drop(n int64) {
	delete(x.waiting, n)
	if e := x.entries[n]; e != nil {
		delete(x.entries, n)
		x.scopes[e.scope].remove(e)
	}
}

// Nearest returns the k documents matching w that are nearest to q, nearest first. Nearness is
// Cosine plus Window. Without q it returns none.
func (v *Vectors) Nearest(ctx context.Context, q []float32, w Filter, k int) ([]Similarity, error) {
	asked := newQuery(q)
	if len(asked.numbers) == 0 {
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
			all = append(all, c.nearest(asked, w, k)...)
		}
	}
	return topK(all, k), ctx.Err()
}

// Compare returns the similarity to q of those documents that have a vector. It only knows scopes
// that Nearest has loaded.
func (v *Vectors) Compare(ctx context.Context, q []float32, entries []int64) (out []Similarity, err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	asked := newQuery(q)
	if len(asked.numbers) != v.index.space.Dim {
		return nil, nil
	}
	for _, n := range entries {
		if e := v.index.entries[n]; e != nil {
			order := v.index.scopes[e.scope].order
			p, _ := order.position(e)
			out = append(out, order.similarity(p, order.cosine(asked)))
		}
	}
	return out, ctx.Err()
}

// Of returns the vector of a document in a scope that Nearest has loaded; nil = none.
func (v *Vectors) Of(n int64) []float32 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e := v.index.entries[n]; e != nil {
		return e.vec.vector()
	}
	return nil
}

// OfStored is Of with the vector in the database, for any scope.
func (v *Vectors) OfStored(ctx context.Context, n int64) ([]float32, error) {
	found, err := v.read(ctx, `WHERE m.n = ? AND `+searchableCondition, n)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return decodeVector(found[0].blob, v.Space().Dim), nil
}

// maxSample is how many texts Background compares, of all scopes together.
const maxSample = 512

// Background returns mean and standard deviation of the similarity to q over a sample. The sample
// has n documents of scopes. Only scopes that Nearest has loaded are known.
func (v *Vectors) Background(q []float32, scopes []trust.Readers) (n int, mean, deviation float64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var loaded []conversations
	total := 0
	for _, scope := range scopes {
		if c := v.index.scopes[scope]; c != nil {
			loaded, total = append(loaded, c.order), total+len(c.order)
		}
	}
	var sample []code
	step, next := max(1, total/maxSample), 0
	for _, order := range loaded {
		for ; next < len(order); next += step {
			sample = append(sample, order[next].vec)
		}
		next -= len(order)
	}
	return background(q, sample)
}

// BackgroundStored is Background with vectors of the database, for any scope. It keeps the last sample
// until a document changes.
func (v *Vectors) BackgroundStored(ctx context.Context, q []float32, scopes []trust.Readers) (n int, mean, deviation float64, err error) {
	v.mu.RLock()
	sample, same := v.sample, slices.Equal(v.sampleScopes, scopes)
	v.mu.RUnlock()
	if sample == nil || !same {
		if sample, err = v.readSample(ctx, scopes); err != nil {
			return 0, 0, 0, err
		}
		v.mu.Lock()
		v.sample, v.sampleScopes = sample, slices.Clone(scopes)
		v.mu.Unlock()
	}
	n, mean, deviation = background(q, sample)
	return n, mean, deviation, nil
}

func (v *Vectors) readSample(ctx context.Context, scopes []trust.Readers) ([]code, error) {
	var all []int64
	for _, scope := range scopes {
		in, err := store.Column[int64](ctx, v.db, `SELECT m.n FROM document AS m JOIN embedding AS v ON v.model = ? AND v.hash = m.hash
			WHERE m.scope = ? AND `+searchableCondition+` ORDER BY m.conversation, m.seq, m.n`, v.Space().No, scope)
		if err != nil {
			return nil, fmt.Errorf("read vectors: %w", err)
		}
		all = append(all, in...)
	}
	var some []int64
	for i := 0; i < len(all); i += max(1, len(all)/maxSample) {
		some = append(some, all[i])
	}
	found, err := v.read(ctx, `WHERE m.n IN (SELECT value FROM json_each(?))`, store.Array(some))
	sample := []code{}
	for _, s := range found {
		if vec := newCode(s.blob, v.Space().Dim); vec.numbers != nil {
			sample = append(sample, vec)
		}
	}
	return sample, store.Wrap(err, "read vectors")
}

// background returns the number of a sample's vectors of the size of q, and mean and standard deviation of
// their similarity to q.
func background(q []float32, sample []code) (n int, mean, deviation float64) {
	asked := newQuery(q)
	var sum, squares float64
	for _, vec := range sample {
		if len(vec.numbers) == len(asked.numbers) {
			c := asked.cosine(vec)
			sum, squares, n = sum+c, squares+c*c, n+1
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / float64(n)
	return n, mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))
}

// orphans selects vectors of texts that no document has.
const orphans = `hash NOT IN (SELECT hash FROM document WHERE state <> 'forgotten')`

// Forget deletes the vectors of a text from every space. They stay if a document still has that
// text. hash is the one the entry had (memory.hash). Call it in the transaction that erases the
// entry, after that; the memory follows the journal.
func Forget(ctx context.Context, tx *sql.Tx, hash string) error {
	// Overwrite in place first, because deleted content stays readable in the file.
	for _, statement := range []string{`UPDATE embedding SET vec = zeroblob(length(vec))`, `DELETE FROM embedding`} {
		if _, err := tx.ExecContext(ctx, statement+` WHERE hash = ? AND `+orphans, hash); err != nil {
			return fmt.Errorf("forget vectors: %w", err)
		}
	}
	return nil
}

// OpenBuiltIn is Open with the encoder built into the program. A program without one returns
// encoder.ErrNoWeights.
func OpenBuiltIn(ctx context.Context, c Config) (*Vectors, error) {
	if !encoder.BuiltIn() {
		return nil, encoder.ErrNoWeights
	}
	c.Embedder = encoder.NewLazy()
	c.Patience = cmp.Or(c.Patience, 2*time.Second) // a busy computer is slow, but reachable
	return Open(ctx, c)
}
