package vector

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

const (
	backgroundBatch = 32 // texts per request of Run
	foregroundBatch = 64 // texts per request of Complete; small servers fail with more
	maxRest         = 2 * time.Second
)

// Run computes missing vectors until ctx ends, the newest documents first. It works at most half of
// the time, and backs off while the embedder fails.
func (v *Vectors) Run(ctx context.Context) error {
	tidied := false
	return v.Repeat(ctx, func() (time.Duration, error) {
		begin := v.now()
		made, err := v.embedBatch(ctx, backgroundBatch)
		if made > 0 {
			tidied = false
			return min(v.now().Sub(begin), maxRest), err
		}
		if err == nil && !tidied {
			err = v.deleteUnused(ctx)
			tidied = err == nil
		}
		return PollInterval, err
	})
}

// Complete computes all missing vectors without pauses and logs its progress. It stops at the first
// failure of the embedder; finished vectors stay.
func (v *Vectors) Complete(ctx context.Context) error {
	for {
		made, err := v.embedBatch(ctx, foregroundBatch)
		if made == 0 || err != nil {
			return err
		}
		s := v.Status(ctx)
		v.log.Info("memories are embedded", "done", s.Done, "total", s.Total)
	}
}

// Rebuild reloads the vectors in memory and computes missing ones. Texts that the model refused are
// tried again.
func (v *Vectors) Rebuild(ctx context.Context) error {
	v.followMu.Lock()
	v.reset(v.Space())
	v.followMu.Unlock()
	if _, err := v.db.ExecContext(ctx, `DELETE FROM embedding WHERE length(vec) = 0`); err != nil {
		return fmt.Errorf("embed memories: %w", err)
	}
	if err := v.Complete(ctx); err != nil {
		return err
	}
	return v.deleteUnused(ctx)
}

// deleteUnused deletes vectors of deleted texts and of other models. The caller has embedded
// everything with the present model.
func (v *Vectors) deleteUnused(ctx context.Context) error {
	space := v.Space().No
	if space == 0 {
		return nil
	}
	for _, which := range []string{`embedding WHERE model <> ?1 OR ` + orphans, `embedding_model WHERE no <> ?1`} {
		if _, err := v.db.ExecContext(ctx, `DELETE FROM `+which, space); err != nil {
			return fmt.Errorf("delete unused vectors: %w", err)
		}
	}
	return nil
}

// pendingDoc is a document without a vector.
type pendingDoc struct {
	n          int64
	hash, text string
}

// embedBatch embeds up to n documents and returns how many. With nothing to do it still probes an
// embedder that failed, to notice its recovery.
func (v *Vectors) embedBatch(ctx context.Context, n int) (made int, err error) {
	v.embedMu.Lock()
	defer v.embedMu.Unlock()
	todo, err := v.nextMissing(ctx, n)
	var vectors [][]float32
	switch {
	case err != nil:
	case len(todo) > 0:
		vectors, err = v.embedOrSkip(ctx, todo)
	default:
		if since, _ := v.health.State(); since.IsZero() {
			return 0, nil
		}
		vectors, err = v.embed(ctx, []string{probeText})
	}
	if err == nil {
		err = v.ensureSpace(ctx, dimension(vectors))
	}
	if err == nil && len(todo) > 0 {
		err = v.storeVectors(ctx, todo, vectors)
	}
	if err == nil {
		v.health.Succeeded()
		return len(todo), nil
	}
	if ctx.Err() == nil {
		v.health.Failed(v.now(), err)
	}
	return 0, err
}

// docsWithVectors selects the searchable documents with their vectors in space ?1.
const docsWithVectors = ` FROM document m LEFT JOIN embedding v ON v.hash = m.hash AND v.model = ?1
	WHERE ` + searchableCondition + ` AND m.text <> ''`

// nextMissing lists the newest n documents without a vector, one per text; of equal texts the oldest says in
// which form it is embedded. It also loads vectors
// that another process computed.
func (v *Vectors) nextMissing(ctx context.Context, n int) ([]pendingDoc, error) {
	v.followMu.Lock()
	defer v.followMu.Unlock()
	if err := v.followLocked(ctx); err != nil {
		return nil, err
	}
	if err := v.reloadWaiting(ctx); err != nil {
		return nil, err
	}
	return store.List(ctx, v.db, func(row store.Row) (u pendingDoc, err error) {
		var scope trust.Readers
		err = row.Scan(&u.n, &u.hash, &u.text, &scope)
		u.text = inFirstPerson(u.text, scope)
		return u, err
	}, `SELECT min(m.n) AS first, m.hash, m.text, m.scope`+docsWithVectors+` AND v.hash IS NULL
		GROUP BY m.hash ORDER BY first DESC LIMIT ?2`, v.index.space.No, n)
}

// reloadWaiting loads the vectors of documents in memory that had none yet.
func (v *Vectors) reloadWaiting(ctx context.Context) error {
	if len(v.index.waiting) == 0 {
		return nil
	}
	return v.reload(ctx, `WHERE m.n IN (SELECT value FROM json_each(?))`, store.Array(slices.Collect(maps.Keys(v.index.waiting))))
}

// probeText is a text that every model can embed.
const probeText = "Good morning."

// embedOrSkip embeds todo. If that fails although the embedder works, single texts cause it: they
// get no vector and are found by their words.
func (v *Vectors) embedOrSkip(ctx context.Context, todo []pendingDoc) ([][]float32, error) {
	texts := make([]string, len(todo))
	for i, u := range todo {
		texts[i] = u.text
	}
	vectors, err := v.embed(ctx, texts)
	if err == nil || ctx.Err() != nil {
		return vectors, err
	}
	vectors = make([][]float32, len(todo))
	for i, text := range texts {
		one, err := v.embed(ctx, []string{text})
		if err == nil {
			vectors[i] = one[0]
			continue
		}
		if _, failed := v.embed(ctx, []string{probeText}); failed != nil {
			return nil, err
		}
		v.log.Warn("the embedding model refuses a memory; it is found by its words only", "n", todo[i].n, "err", err)
	}
	return vectors, nil
}

// embed calls the embedder and validates the result.
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
			return nil, fmt.Errorf("a vector is invalid: %w", err)
		}
	}
	return vectors, nil
}

// dimension is the length of vectors; 0 = all are empty.
func dimension(vectors [][]float32) int {
	for _, v := range vectors {
		if len(v) > 0 {
			return len(v)
		}
	}
	return 0
}

// ensureSpace makes the space of dim the current one; 0 = no vector, which fits any space. Another
// length means another model, whatever its name, so all texts are embedded again.
func (v *Vectors) ensureSpace(ctx context.Context, dim int) error {
	v.followMu.Lock()
	defer v.followMu.Unlock()
	current, next := v.Space(), Space{Dim: dim}
	if current.No != 0 && (dim == 0 || dim == current.Dim) {
		return nil
	}
	name := v.Model()
	_, err := v.db.ExecContext(ctx, `INSERT INTO embedding_model (model, dim) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, dim)
	if err == nil {
		err = v.db.QueryRowContext(ctx, `SELECT no FROM embedding_model WHERE model = ? AND dim = ?`, name, dim).Scan(&next.No)
	}
	if err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	if current.Dim != 0 {
		v.log.Warn("the embedding model returns vectors of another length; all memories are embedded again", "was", current.Dim, "is", dim)
	}
	v.reset(next)
	return nil
}

// storeVectors stores vectors, except those of texts forgotten in the meantime.
func (v *Vectors) storeVectors(ctx context.Context, todo []pendingDoc, vectors [][]float32) error {
	v.followMu.Lock()
	defer v.followMu.Unlock()
	err := store.InTx(ctx, v.db, func(tx *sql.Tx) error {
		for i, u := range todo {
			code, err := encodeVector(vectors[i])
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO embedding (model, hash, vec)
				SELECT ?, hash, ? FROM document m WHERE n = ? AND hash = ? AND `+searchableCondition+`
				ON CONFLICT (model, hash) DO UPDATE SET vec = excluded.vec`, v.index.space.No, code, u.n, u.hash); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	return v.reloadWaiting(ctx)
}
