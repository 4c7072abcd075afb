package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// What counts as near: more than almost all texts of the same scope are, and by no
// means less than this, where there are enough of them to tell.
const (
	nearFloor  = .8
	nearerThan = 2.576 // standard deviations: 99.5 of a hundred
)

// Neighbours are the ids of up to k active entries of the scope of the active entry id that are
// near to it in meaning, the nearest first. There are none where there are no vectors,
// or none of that entry yet. It makes no vector and asks no model.
func (s *Store) Neighbours(ctx context.Context, id string, k int) ([]string, error) {
	h, ok := s.finder.(*Hybrid)
	if !ok || k <= 0 {
		return nil, nil
	}
	space, dim := h.vectors.current()
	var n int64
	var scope Scope
	var blob []byte
	err := s.db.QueryRowContext(ctx, `SELECT m.n, m.scope, v.vec FROM memory AS m JOIN memory_vector AS v ON v.hash = m.hash AND v.space = ?
		WHERE m.id = ? AND m.state = 'active'`, space, id).Scan(&n, &scope, &blob)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	vector, _ := decodeVector(blob, dim)
	if vector == nil {
		return nil, nil // a damaged one is made again
	}
	found, err := h.near.nearest(ctx, vector, wanted{scopes: []Scope{scope}}, k+1)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	least := nearFloor
	if count, mean, deviation := h.vectors.background(vector, []Scope{scope}); count >= fewest {
		least = max(least, mean+nearerThan*deviation)
	}
	var out []string
	for _, l := range found {
		if l.N == n || l.Cosine < least || len(out) == k {
			continue
		}
		var other string
		err := s.db.QueryRowContext(ctx, `SELECT id FROM memory WHERE n = ? AND state = 'active' AND scope = ?`, l.N, scope).Scan(&other)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("memory: %w", err)
		}
		out = append(out, other)
	}
	return out, nil
}
