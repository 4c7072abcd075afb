package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
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

// VectorConfig says what vectors are made with.
type VectorConfig struct {
	DB       *sql.DB // with the tables of the migrations; the caller closes it
	Embedder Embedder
	// BuiltIn says that the embedder is part of the program. A late vector then means
	// a busy computer, and not a server that is unreachable.
	BuiltIn bool
	// Patience is how long a question waits for its vector; 0 = 300 ms. Who waits
	// for nothing else, as a command does, may take longer.
	Patience time.Duration
	// Neutral is the cosine of two English texts of which one cannot say whether they
	// are about the same; models differ in it. A model that has one is taken to know
	// English best: texts in another language are alike to it because of that, so words
	// alone say then whether anything is relevant. 0 = it is not known: then meaning may
	// bring up what words do not, from a high cosine on, but never keeps back what they do.
	Neutral float64
	// Elsewhere leaves the comparing to Points: vectors are made, and none is kept in memory.
	Elsewhere bool
	Log       *slog.Logger // nil = silent
	Now       func() time.Time
}

// Vectors keeps the vectors of entries: in the database, which is the truth, and in
// memory, where they are compared. It follows the journal of the entries by itself,
// whoever changes them. It is safe for concurrent use, also beside other processes.
type Vectors struct {
	db        *sql.DB
	embedder  Embedder
	builtIn   bool // embedder is part of the program
	patience  time.Duration
	neutral   float64
	measured  bool // neutral is the model's own
	elsewhere bool
	log       *slog.Logger
	now       func() time.Time
	sleep     func(context.Context, time.Duration) error
	nap       func(context.Context, time.Duration) // Run's, until Wake
	wake      chan struct{}

	following sync.Mutex // one at a time reads the journal
	seen      int64      // memory_op.seq up to where it was read

	mu      sync.RWMutex
	space   int64 // memory_space.no; 0 = no vector was ever made
	dim     int
	shelves map[Scope]*shelf
	scopes  map[int64]Scope // of the entries that have a vector
	empty   map[int64]bool  // what the model makes nothing of
	missing map[int64]bool  // what has no vector
	aside   map[int64]bool  // of these, those whose text the model refuses

	working sync.Mutex // one at a time makes vectors
	asked   questions
	health  health
}

// Likeness is how near an entry is to a question, from -1 to 1.
type Likeness struct {
	N      int64   // memory.n
	Cosine float64 // of the entry's own vector
	Window float64 // of what it says together with its neighbours in the conversation; = Cosine without any
}

// wanted says which entries are looked for.
type wanted struct {
	scopes        []Scope   // no scope finds nothing
	past          bool      // those that no longer hold, too
	after, before time.Time // only what was said in this time; zero = no bound
}

func (w wanted) takes(r *vectorRow) bool {
	return (w.past || !r.past) &&
		(w.after.IsZero() || r.observed >= w.after.UnixMilli()) && (w.before.IsZero() || r.observed < w.before.UnixMilli())
}

// OpenVectors reads the vectors that there are. It asks the embedder for nothing:
// Run and Complete make what is missing.
func OpenVectors(ctx context.Context, c VectorConfig) (*Vectors, error) {
	if c.DB == nil || c.Embedder == nil || c.Embedder.Name() == "" {
		return nil, errors.New("vectors: the database and an embedder with a name are both needed")
	}
	v := &Vectors{db: c.DB, embedder: c.Embedder, builtIn: c.BuiltIn, patience: c.Patience, neutral: c.Neutral, elsewhere: c.Elsewhere, log: c.Log, now: c.Now, sleep: rest, wake: make(chan struct{}, 1)}
	v.nap = v.pause
	if v.patience <= 0 {
		v.patience = 300 * time.Millisecond
	}
	if v.measured = v.neutral != 0; !v.measured {
		v.neutral = .75 // about right for models that are made to find texts
	}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	if v.now == nil {
		v.now = time.Now
	}
	// The space of the last vectors: of which length they are now is known with
	// the next one that is made.
	err := c.DB.QueryRowContext(ctx, `SELECT no, dim FROM memory_space WHERE model = ? ORDER BY no DESC LIMIT 1`, c.Embedder.Name()).Scan(&v.space, &v.dim)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	v.clear()
	return v, v.follow(ctx)
}

// clear forgets what is in memory; follow reads it again.
func (v *Vectors) clear() {
	v.shelves, v.scopes = map[Scope]*shelf{}, map[int64]Scope{}
	v.empty, v.missing, v.aside = map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	v.seen = -1
}

// indexed are the states in which an entry can be found.
const indexed = `m.state IN ('active', 'superseded', 'archived')`

const vectorColumns = `SELECT m.n, m.scope, ` + indexed + ` AND m.text <> '', m.state <> 'active', m.conversation, m.seq, m.observed_at, v.hash IS NOT NULL, coalesce(v.vec, x'')
	FROM memory m LEFT JOIN memory_vector v ON v.hash = m.hash AND v.space = ? `

// follow takes in what was done to the entries since it was called last.
func (v *Vectors) follow(ctx context.Context) error {
	v.following.Lock()
	defer v.following.Unlock()
	return v.catchUp(ctx)
}

// catchUp is follow for who holds v.following.
func (v *Vectors) catchUp(ctx context.Context) error {
	var last int64
	if err := v.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM memory_op`).Scan(&last); err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	if last == v.seen {
		return nil
	}
	var err error
	if v.seen < 0 { // neighbours in their order are added fastest
		err = v.load(ctx, vectorColumns+`WHERE `+indexed+` ORDER BY m.scope, m.conversation, m.seq, m.n`, v.space)
	} else {
		err = v.load(ctx, vectorColumns+`WHERE m.id IN (SELECT entry FROM memory_op WHERE seq > ? AND seq <= ?)`, v.space, v.seen, last)
	}
	if err == nil {
		v.seen = last
	}
	return err
}

// loaded is an entry as the database has it.
type loaded struct {
	vectorRow
	scope Scope
	there bool // it can be found
	read  bool // it has a vector,
	vec   []byte
}

// load reads entries and replaces what is in memory of them, a part at a time, so
// that nobody waits long.
func (v *Vectors) load(ctx context.Context, query string, args ...any) error {
	rows, err := v.db.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	defer rows.Close()
	const part = 1000
	some := make([]loaded, 0, part)
	for rows.Next() {
		var l loaded
		if err := rows.Scan(&l.n, &l.scope, &l.there, &l.past, &l.talk, &l.seq, &l.observed, &l.read, &l.vec); err != nil {
			return fmt.Errorf("read vectors: %w", err)
		}
		if some = append(some, l); len(some) == part {
			v.replace(some)
			some = some[:0]
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	v.replace(some)
	return nil
}

func (v *Vectors) replace(some []loaded) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range some {
		v.drop(l.n)
		if !l.there {
			v.asked.clear() // a question may say the same as what was forgotten
			continue
		}
		code, err := decodeVector(l.vec, v.dim)
		switch {
		case err == nil && code != nil:
			if !v.elsewhere {
				v.shelf(l.scope).put(l.vectorRow, code)
			}
			v.scopes[l.n] = l.scope
		case err == nil && l.read:
			v.empty[l.n] = true
		default: // a damaged one is made again
			v.missing[l.n] = true
		}
	}
}

func (v *Vectors) drop(n int64) {
	if scope, there := v.scopes[n]; there {
		if s := v.shelves[scope]; s != nil {
			s.drop(n)
		}
		delete(v.scopes, n)
	}
	delete(v.empty, n)
	delete(v.missing, n)
	delete(v.aside, n)
}

func (v *Vectors) shelf(scope Scope) *shelf {
	if v.shelves[scope] == nil {
		v.shelves[scope] = newShelf(v.dim)
	}
	return v.shelves[scope]
}

// nearest finds the k entries of w that are nearest to the vector q, by Cosine and
// Window together, nearest first. Without q there are none.
func (v *Vectors) nearest(ctx context.Context, q []float32, w wanted, k int) ([]Likeness, error) {
	if len(q) == 0 || k <= 0 {
		return nil, nil
	}
	if err := v.follow(ctx); err != nil {
		return nil, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	p := newProbe(q)
	if p == nil || len(q) != v.dim {
		return nil, nil
	}
	var found []Likeness
	for i, scope := range w.scopes {
		if s := v.shelves[scope]; s != nil && !slices.Contains(w.scopes[:i], scope) {
			found = append(found, s.nearest(p, w, k)...)
		}
	}
	return best(found, k), ctx.Err()
}

// likeness says how near to q those of the entries are that have a vector.
func (v *Vectors) likeness(q []float32, entries []int64) map[int64]Likeness {
	v.mu.RLock()
	defer v.mu.RUnlock()
	p := newProbe(q)
	if p == nil || len(q) != v.dim {
		return nil
	}
	out := make(map[int64]Likeness, len(entries))
	looks := map[Scope]*look{}
	for _, n := range entries {
		scope, there := v.scopes[n]
		if !there || v.shelves[scope] == nil {
			continue
		}
		if looks[scope] == nil {
			looks[scope] = v.shelves[scope].look(p)
		}
		out[n] = looks[scope].compare(looks[scope].at[n])
	}
	return out
}

// compare implements nearer.
func (v *Vectors) compare(ctx context.Context, q []float32, entries []int64) (map[int64]Likeness, error) {
	return v.likeness(q, entries), ctx.Err()
}

// current is the present memory_space.no, and how many numbers its vectors have; 0
// = no vector was ever made.
func (v *Vectors) current() (space int64, dim int) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.space, v.dim
}

// background is how near to q texts are that were taken from anywhere in scopes.
func (v *Vectors) background(q []float32, scopes []Scope) (n int, mean, deviation float64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	p := newProbe(q)
	if p == nil || len(q) != v.dim {
		return 0, 0, 0
	}
	all := 0
	for _, scope := range scopes {
		if s := v.shelves[scope]; s != nil {
			all += len(s.rows)
		}
	}
	step := max(1, all/sampled)
	var sum, squares float64
	for _, scope := range scopes {
		s := v.shelves[scope]
		if s == nil {
			continue
		}
		for i := 0; i < len(s.rows); i += step {
			c := p.cosine(s, int32(i))
			sum, squares, n = sum+c, squares+c*c, n+1
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / float64(n)
	return n, mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))
}

// forgetVectors takes the vectors of texts out of every space, unless an entry
// still says the same. hashes are those the entries had (memory.hash). It belongs into the
// transaction that empties them, after that; memory follows the journal.
func forgetVectors(ctx context.Context, tx *sql.Tx, hashes ...string) error {
	for part := range slices.Chunk(hashes, 500) {
		args := make([]any, len(part))
		for i, h := range part {
			args[i] = h
		}
		gone := ` WHERE hash IN (?` + strings.Repeat(", ?", len(part)-1) + `)
			AND hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten')`
		// Overwritten in place first: what is deleted stays readable in the file.
		for _, statement := range []string{`UPDATE memory_vector SET vec = zeroblob(length(vec))`, `DELETE FROM memory_vector`} {
			if _, err := tx.ExecContext(ctx, statement+gone, args...); err != nil {
				return fmt.Errorf("forget vectors: %w", err)
			}
		}
	}
	return nil
}

// numbers reads a column of numbers.
func numbers(ctx context.Context, db querier, query string, args ...any) ([]int64, error) {
	out, err := list[int64](ctx, db, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return out, nil
}
