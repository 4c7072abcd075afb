package memory

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
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

// pause waits for d, or less if there is something to do.
func (v *Vectors) pause(ctx context.Context, d time.Duration) { pauseFor(ctx, d, v.wake) }

func pauseFor(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-wake:
	}
}

func (v *Vectors) tell(ctx context.Context) {
	s := v.Status()
	v.log.LogAttrs(ctx, slog.LevelInfo, "memories are embedded", slog.String("model", s.Model), slog.Int("done", s.Done), slog.Int("total", s.Total))
}

// Complete makes all vectors that are missing, as fast as it can. progress may be
// nil. It ends with the first failure of the embedder; what was made stays.
func (v *Vectors) Complete(ctx context.Context, progress func(done, total int)) error {
	for {
		made, err := v.step(ctx, wholeBatch)
		if progress != nil {
			s := v.Status()
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

// next lists the newest n entries that have no vector, after a look at the
// database: another process may have made one.
func (v *Vectors) next(ctx context.Context, n int) ([]unread, error) {
	v.following.Lock()
	defer v.following.Unlock()
	if err := v.catchUp(ctx); err != nil {
		return nil, err
	}
	for {
		chosen := v.newestMissing(n)
		if len(chosen) == 0 {
			return nil, nil
		}
		if todo, err := v.unread(ctx, chosen); err != nil || len(todo) > 0 {
			return todo, err
		}
	}
}

// unread lists those of chosen that still have no vector, of equal texts the first.
func (v *Vectors) unread(ctx context.Context, chosen []int64) ([]unread, error) {
	if err := v.reload(ctx, chosen); err != nil {
		return nil, err
	}
	all, err := v.texts(ctx, chosen)
	if err != nil {
		return nil, err
	}
	var todo []unread
	seen := map[string]bool{}
	for _, u := range all {
		v.mu.RLock()
		missing := v.missing[u.n]
		v.mu.RUnlock()
		if missing && !seen[u.hash] {
			todo = append(todo, u)
		}
		seen[u.hash] = true
		chosen = slices.DeleteFunc(chosen, func(n int64) bool { return n == u.n })
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range chosen { // what is no longer there at all
		delete(v.missing, n)
	}
	return todo, nil
}

// reload takes in from the database what is known of entries.
func (v *Vectors) reload(ctx context.Context, entries []int64) error {
	in, args := list64(entries)
	return v.load(ctx, vectorColumns+`WHERE m.n IN `+in, append([]any{v.space}, args...)...)
}

// texts reads what is to be embedded of entries.
func (v *Vectors) texts(ctx context.Context, entries []int64) ([]unread, error) {
	in, args := list64(entries)
	rows, err := v.db.QueryContext(ctx, `SELECT n, hash, text FROM memory m WHERE `+indexed+` AND n IN `+in, args...)
	if err != nil {
		return nil, fmt.Errorf("embed memories: %w", err)
	}
	defer rows.Close()
	var out []unread
	for rows.Next() {
		var u unread
		if err := rows.Scan(&u.n, &u.hash, &u.text); err != nil {
			return nil, fmt.Errorf("embed memories: %w", err)
		}
		out = append(out, u)
	}
	return out, rows.Err()
}

func (v *Vectors) newestMissing(n int) []int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var chosen []int64
	for m := range v.missing {
		if v.aside[m] || len(chosen) == n && m < chosen[0] {
			continue
		}
		p, _ := slices.BinarySearch(chosen, m)
		chosen = slices.Insert(chosen, p, m)
		if len(chosen) > n {
			chosen = chosen[1:]
		}
	}
	return chosen
}

func list64(numbers []int64) (in string, args []any) {
	args = make([]any, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	return "(?" + strings.Repeat(", ?", len(numbers)-1) + ")", args
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

// settle makes the space of vectors of dim numbers the present one. Those of
// another length are of another model, whatever its name: all are made anew.
func (v *Vectors) settle(ctx context.Context, dim int) error {
	v.following.Lock()
	defer v.following.Unlock()
	if dim == 0 || dim == v.dim {
		return nil
	}
	name := v.embedder.Name()
	_, err := v.db.ExecContext(ctx, `INSERT INTO memory_space (model, dim) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, dim)
	var space int64
	if err == nil {
		err = v.db.QueryRowContext(ctx, `SELECT no FROM memory_space WHERE model = ? AND dim = ?`, name, dim).Scan(&space)
	}
	if err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	if v.dim != 0 {
		v.log.LogAttrs(ctx, slog.LevelWarn, "the embedding model gives vectors of another length; all memories are embedded anew", slog.Int("was", v.dim), slog.Int("is", dim))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.space, v.dim = space, dim
	for n := range v.scopes { // those that have one in this space are found by the next step
		v.missing[n] = true
	}
	for n := range v.empty {
		v.missing[n] = true
	}
	v.shelves, v.scopes, v.empty = map[Scope]*shelf{}, map[int64]Scope{}, map[int64]bool{}
	v.asked.clear()
	return nil
}

// keep stores vectors, but none of a text that was forgotten meanwhile.
func (v *Vectors) keep(ctx context.Context, todo []unread, vectors [][]float32, refused []bool) error {
	v.following.Lock()
	defer v.following.Unlock()
	numbers := make([]int64, len(todo))
	for i, u := range todo {
		numbers[i] = u.n
	}
	if v.space != 0 {
		if err := v.write(ctx, todo, vectors, refused); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
		if err := v.reload(ctx, numbers); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, u := range todo {
		switch {
		case !v.missing[u.n]:
		case v.space == 0 && !refused[i]: // nothing at all has a vector yet, so there is nowhere to note that this has none
			delete(v.missing, u.n)
			v.empty[u.n] = true
		default:
			v.aside[u.n] = true
		}
	}
	return nil
}

func (v *Vectors) write(ctx context.Context, todo []unread, vectors [][]float32, refused []bool) error {
	tx, err := v.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for i, u := range todo {
		if refused[i] {
			continue
		}
		code, err := encodeVector(vectors[i])
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO memory_vector (space, hash, vec) SELECT ?, hash, ? FROM memory m WHERE n = ? AND hash = ? AND `+indexed+`
			ON CONFLICT (space, hash) DO UPDATE SET vec = excluded.vec`, v.space, code, u.n, u.hash); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// other reports whether there are vectors of other spaces.
func (v *Vectors) other(ctx context.Context) bool {
	var n int
	err := v.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_space WHERE no <> ?`, v.present()).Scan(&n)
	return err == nil && n > 0
}

func (v *Vectors) present() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.space
}
