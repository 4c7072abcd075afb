package memory

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"reverie/internal/store"
)

const (
	batch       = 32              // texts that are embedded together in the background
	wholeBatch  = 256             // and when somebody waits for all of them
	lookAgain   = 5 * time.Second // for entries that other processes wrote
	longestRest = 2 * time.Second
	firstPause  = time.Second // after a failure; doubled each time
	lastPause   = 5 * time.Minute
	tellEvery   = 500 // entries, in the log
)

// rest waits for d or until ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Wake tells Run that there may be something to do. It never blocks.
func (v *Vectors) Wake() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Run makes the vectors that are missing until ctx ends: the newest entries
// first, and never more than half of the time. While the embedder fails it tries
// ever more rarely.
func (v *Vectors) Run(ctx context.Context) error {
	told, tidied, pause := 0, false, firstPause
	for ctx.Err() == nil {
		begin := v.now()
		made, err := v.step(ctx, batch)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if pause == firstPause && v.health.well() {
				v.log.LogAttrs(ctx, slog.LevelWarn, "vectors cannot be stored; memory is searched by words meanwhile", slog.String("err", err.Error()))
			}
			v.nap(ctx, pause)
			pause = min(2*pause, lastPause)
		case made > 0:
			pause = firstPause
			if told += made; told >= tellEvery {
				told = 0
				v.tell(ctx)
			}
			_ = v.sleep(ctx, min(v.now().Sub(begin), longestRest))
		default:
			pause = firstPause
			if told > 0 {
				told = 0
				v.tell(ctx)
			}
			if !tidied || v.other(ctx) {
				tidied = v.tidy(ctx)
			}
			v.nap(ctx, lookAgain)
		}
	}
	return nil
}

// pauseFor waits for d, or less if there is something to do.
func pauseFor(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-wake:
	}
}

func (v *Vectors) tell(ctx context.Context) {
	s := v.Status(ctx)
	v.log.LogAttrs(ctx, slog.LevelInfo, "memories are embedded", slog.String("model", s.Model), slog.Int("done", s.Done), slog.Int("total", s.Total))
}

// Complete makes all vectors that are missing, as fast as it can. progress may be
// nil. It ends with the first failure of the embedder; what was made stays.
func (v *Vectors) Complete(ctx context.Context, progress func(done, total int)) error {
	for {
		made, err := v.step(ctx, wholeBatch)
		if progress != nil {
			s := v.Status(ctx)
			progress(s.Done, s.Total)
		}
		if made == 0 || err != nil {
			return err
		}
	}
}

// unread is an entry that has no vector.
type unread struct {
	n          int64
	hash, text string
}

// step makes up to n vectors and returns how many entries it dealt with. An embedder that
// failed is tried even if there is nothing to do, so that one knows when it is back.
func (v *Vectors) step(ctx context.Context, n int) (int, error) {
	v.working.Lock()
	defer v.working.Unlock()
	todo, err := v.next(ctx, n)
	if err != nil {
		return 0, err
	}
	if len(todo) == 0 {
		if v.health.well() {
			return 0, nil
		}
		return 0, v.probe(ctx)
	}
	vectors, refused, err := v.try(ctx, todo)
	if err == nil {
		err = v.settle(ctx, dimension(vectors))
	}
	if err != nil {
		if ctx.Err() == nil {
			v.failed(ctx, err)
		}
		return 0, err
	}
	v.works(ctx)
	return len(todo), v.keep(ctx, todo, vectors, refused)
}

// unmade says of an entry whether its text still needs a vector in space ?1 of ?2 numbers.
// A damaged one is made again.
const unmade = `(v.hash IS NULL OR length(v.vec) > 0 AND (length(v.vec) <> ?2 OR v.vec = zeroblob(?2)))`

// withVector are the entries that can be found, with their vectors in space ?1.
const withVector = ` FROM memory m LEFT JOIN memory_vector v ON v.hash = m.hash AND v.space = ?1 WHERE ` + indexed + ` AND m.text <> ''`

// next lists the newest n entries that have no vector, of equal texts the first. It also takes
// in the vectors that another process made.
func (v *Vectors) next(ctx context.Context, n int) ([]unread, error) {
	v.following.Lock()
	defer v.following.Unlock()
	if err := v.catchUp(ctx); err != nil {
		return nil, err
	}
	if err := v.reloadWaiting(ctx); err != nil {
		return nil, err
	}
	if v.made == v.seen {
		return nil, nil
	}
	todo, err := store.List(ctx, v.db, func(row store.Row) (u unread, err error) {
		err = row.Scan(&u.n, &u.hash, &u.text)
		return u, err
	}, `SELECT min(m.n) AS first, m.hash, m.text`+withVector+` AND `+unmade+`
		AND m.hash NOT IN (SELECT value FROM json_each(?3)) GROUP BY m.hash ORDER BY first DESC LIMIT ?4`, v.index.space, v.index.dim, v.refusedTexts(), n)
	if err != nil {
		return nil, fmt.Errorf("embed memories: %w", err)
	}
	if len(todo) == 0 {
		v.made = v.seen
	}
	return todo, nil
}

// refusedTexts are the hashes of texts that the model does not take, as JSON.
func (v *Vectors) refusedTexts() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return inJSON(slices.Collect(maps.Keys(v.refused)))
}

// reloadWaiting takes in the vectors that were made of entries in memory.
func (v *Vectors) reloadWaiting(ctx context.Context) error {
	if len(v.index.waiting) == 0 {
		return nil
	}
	return v.reload(ctx, `WHERE m.n IN (SELECT value FROM json_each(?))`, inJSON(slices.Collect(maps.Keys(v.index.waiting))))
}

// harmless is a text that every model takes.
const harmless = "Good morning."

// probe tries whether the embedder works.
func (v *Vectors) probe(ctx context.Context) error {
	vectors, err := v.embed(ctx, []string{harmless})
	if err == nil {
		err = v.settle(ctx, dimension(vectors))
	}
	if err == nil {
		v.works(ctx)
	} else if ctx.Err() == nil {
		v.failed(ctx, err)
	}
	return err
}

// try embeds todo. If that fails although the embedder works, it is because of
// some of the texts: they are refused, and the others get their vectors.
func (v *Vectors) try(ctx context.Context, todo []unread) (vectors [][]float32, refused []bool, err error) {
	texts := make([]string, len(todo))
	for i, u := range todo {
		texts[i] = u.text
	}
	refused = make([]bool, len(todo))
	vectors, err = v.embed(ctx, texts)
	if err == nil || ctx.Err() != nil {
		return vectors, refused, err
	}
	if _, failed := v.embed(ctx, []string{harmless}); failed != nil {
		return nil, nil, err
	}
	vectors = make([][]float32, len(todo))
	for i, text := range texts {
		one, err := v.embed(ctx, []string{text})
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if refused[i] = err != nil; refused[i] {
			v.log.LogAttrs(ctx, slog.LevelWarn, "a memory is not taken by the embedding model; it is found by its words", slog.Int64("n", todo[i].n), slog.String("err", err.Error()))
			continue
		}
		vectors[i] = one[0]
	}
	return vectors, refused, nil
}

// embed asks the embedder and checks what it gives.
func (v *Vectors) embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := v.embedder.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%d vectors came for %d texts", len(vectors), len(texts))
	}
	dim := dimension(vectors)
	for _, vector := range vectors {
		if len(vector) != 0 && len(vector) != dim {
			return nil, fmt.Errorf("a vector has %d numbers and another %d", len(vector), dim)
		}
		if _, err := encodeVector(vector); err != nil {
			return nil, fmt.Errorf("a vector is of no use: %w", err)
		}
	}
	return vectors, nil
}

// dimension is how long vectors are; 0 = there are none.
func dimension(vectors [][]float32) int {
	for _, v := range vectors {
		if len(v) > 0 {
			return len(v)
		}
	}
	return 0
}

// settle makes the space of vectors of dim numbers the present one; 0 = there are none, which
// any space can note. Those of another length are of another model, whatever its name: all are made anew.
func (v *Vectors) settle(ctx context.Context, dim int) error {
	v.following.Lock()
	defer v.following.Unlock()
	space, was := v.current()
	if space != 0 && (dim == 0 || dim == was) {
		return nil
	}
	name := v.embedder.Name()
	_, err := v.db.ExecContext(ctx, `INSERT INTO memory_space (model, dim) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, dim)
	if err == nil {
		err = v.db.QueryRowContext(ctx, `SELECT no FROM memory_space WHERE model = ? AND dim = ?`, name, dim).Scan(&space)
	}
	if err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	if was != 0 {
		v.log.LogAttrs(ctx, slog.LevelWarn, "the embedding model gives vectors of another length; all memories are embedded anew",
			slog.Int("was", was), slog.Int("is", dim))
	}
	v.reset(space, dim)
	return nil
}

// keep stores vectors, but none of a text that was forgotten meanwhile.
func (v *Vectors) keep(ctx context.Context, todo []unread, vectors [][]float32, refused []bool) error {
	v.following.Lock()
	defer v.following.Unlock()
	if err := v.write(ctx, todo, vectors, refused); err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	v.mu.Lock()
	for i, u := range todo {
		if refused[i] {
			v.refused[u.hash] = true
		}
	}
	v.mu.Unlock()
	return v.reloadWaiting(ctx)
}

func (v *Vectors) write(ctx context.Context, todo []unread, vectors [][]float32, refused []bool) error {
	return store.InTx(ctx, v.db, func(tx *sql.Tx) error {
		for i, u := range todo {
			if refused[i] {
				continue
			}
			code, err := encodeVector(vectors[i])
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO memory_vector (space, hash, vec) SELECT ?, hash, ? FROM memory m WHERE n = ? AND hash = ? AND `+indexed+`
				ON CONFLICT (space, hash) DO UPDATE SET vec = excluded.vec`, v.index.space, code, u.n, u.hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// other reports whether there are vectors of other spaces.
func (v *Vectors) other(ctx context.Context) bool {
	var n int
	space, _ := v.current()
	err := v.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_space WHERE no <> ?`, space).Scan(&n)
	return err == nil && n > 0
}
