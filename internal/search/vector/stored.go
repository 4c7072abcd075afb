package vector

import (
	"context"
	"fmt"
	"slices"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Space says which vectors can be compared with each other: those of one model, equally long.
type Space struct {
	No  int64 // embedding_model.no; 0 = there are no vectors yet
	Dim int   // length of a vector
}

// Fits reports whether q can be compared with the vectors of s.
func (s Space) Fits(q []float32) bool { return len(q) == s.Dim && unit(q) != nil }

// Space returns the current space.
func (v *Vectors) Space() Space {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.index.space
}

// Point is a document with its vector, as it is sent to a server. It never contains text.
type Point struct {
	ID     string        `json:"entry"`
	Rev    int64         `json:"rev"`
	Scope  trust.Readers `json:"scope"`
	State  string        `json:"state"`
	At     int64         `json:"at"` // when it was said; Unix milliseconds
	Vector []float32     `json:"-"`
}

// Revisions calls do with each document that has a vector in s, the newest first.
func (v *Vectors) Revisions(ctx context.Context, s Space, do func(id string, rev int64)) error {
	err := store.Each(ctx, v.db, func(row store.Row) error {
		var id string
		var rev int64
		if err := row.Scan(&id, &rev); err != nil {
			return err
		}
		do(id, rev)
		return nil
	}, `SELECT m.id, m.rev FROM document AS m JOIN embedding AS v ON v.model = ? AND v.hash = m.hash
		WHERE `+searchableCondition+` AND length(v.vec) > 0 ORDER BY m.n DESC`, s.No)
	return store.Wrap(err, "read vectors")
}

// Points reads the current state of documents ids. It leaves out those that have no vector in s.
func (v *Vectors) Points(ctx context.Context, s Space, ids []string) ([]Point, error) {
	return store.List(ctx, v.db, func(row store.Row) (p Point, err error) {
		var blob []byte
		err = row.Scan(&p.ID, &p.Rev, &p.Scope, &p.State, &p.At, &blob)
		p.Vector = decodeVector(blob, s.Dim)
		return p, err
	}, `SELECT m.id, m.rev, m.scope, m.state, m.at, v.vec FROM json_each(?) AS j CROSS JOIN document AS m ON m.id = j.value
		JOIN embedding AS v ON v.model = ? AND v.hash = m.hash WHERE `+searchableCondition, store.Array(ids), s.No)
}

// NearestAmong returns the k documents matching w that are nearest to q. It considers ids and their
// neighbours in conversations. A neighbour's window may be nearer than the document itself.
func (v *Vectors) NearestAmong(ctx context.Context, q []float32, ids []string, w Filter, k int) ([]Similarity, error) {
	docs, err := store.Column[int64](ctx, v.db, `SELECT m.n FROM json_each(?) AS j JOIN document AS m ON m.id = j.value`, store.Array(ids))
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	if docs, err = v.withAdjacent(ctx, docs); err != nil {
		return nil, err
	}
	near, err := v.compareStored(ctx, q, docs, func(e *vectorEntry) bool { return slices.Contains(w.Scopes, e.scope) && w.matches(e) })
	return topK(near, k), err
}

// SimilaritiesStored is Compare with the vectors in the database, for any scope.
func (v *Vectors) SimilaritiesStored(ctx context.Context, q []float32, docs []int64) ([]Similarity, error) {
	return v.compareStored(ctx, q, docs, func(*vectorEntry) bool { return true })
}

func (v *Vectors) compareStored(
	ctx context.Context, q []float32, docs []int64, wants func(*vectorEntry) bool,
) (out []Similarity, err error) {
	beside, err := v.withAdjacent(ctx, docs)
	if err != nil {
		return nil, err
	}
	all, err := v.read(ctx, `WHERE m.n IN (SELECT value FROM json_each(?)) AND `+searchableCondition+`
		ORDER BY m.scope, m.conversation, m.seq, m.n`, store.Array(beside))
	if err != nil {
		return nil, err
	}
	dim := v.Space().Dim
	var order conversations
	for _, s := range all {
		if s.vec = newCode(s.blob, dim); s.vec.numbers != nil && s.searchable {
			order = append(order, &s.vectorEntry)
			order.weigh(len(order) - 1)
		}
	}
	cosine := order.cosine(newQuery(q))
	for i, e := range order {
		if slices.Contains(docs, e.n) && wants(e) {
			out = append(out, order.similarity(i, cosine))
		}
	}
	return out, nil
}

// withAdjacent adds to docs their neighbours in conversations.
func (v *Vectors) withAdjacent(ctx context.Context, docs []int64) ([]int64, error) {
	// The + makes SQLite use the index of conversations, which is faster than that of scopes.
	return store.Column[int64](ctx, v.db, `SELECT value FROM json_each(?1) UNION SELECT m.n FROM json_each(?1) AS j
		CROSS JOIN document AS h ON h.n = j.value CROSS JOIN document AS m
		ON m.conversation = h.conversation AND m.conversation <> '' AND +m.scope = h.scope
		AND m.seq BETWEEN h.seq - 1 AND h.seq + 1`, store.Array(docs))
}

// ActiveVector reads the number, scope and vector of the active document id; nil = it has no
// vector.
func (v *Vectors) ActiveVector(ctx context.Context, id string) (doc int64, scope trust.Readers, vector []float32, err error) {
	space := v.Space()
	var blob []byte
	row := v.db.QueryRowContext(ctx, `SELECT m.n, m.scope, v.vec FROM document AS m
		JOIN embedding AS v ON v.hash = m.hash AND v.model = ? WHERE m.id = ? AND m.state = 'active'`, space.No, id)
	err = row.Scan(&doc, &scope, &blob)
	if found, err := store.Found(err); !found {
		return 0, "", nil, store.Wrap(err, "read vectors")
	}
	return doc, scope, decodeVector(blob, space.Dim), nil
}
