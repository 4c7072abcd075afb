package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/search/vector"
	"reverie/internal/trust"
)

// What counts as near: more than almost all texts of the same scope are, and by no
// means less than this, where there are enough of them to tell.
const (
	nearFloor      = .8
	nearDeviations = 2.576 // standard deviations: 99.5 of a hundred
)

// Neighbours are the ids of up to k active documents of the scope of the active document id that
// are near to it in meaning, the nearest first. There are none without vectors, or if
// that has none yet. It makes no vector and asks no model.
func (h *Hybrid) Neighbours(ctx context.Context, id string, k int) ([]string, error) {
	if h.vectors == nil {
		return nil, nil
	}
	n, scope, embedding, err := h.vectors.ActiveVector(ctx, id)
	if err != nil || embedding == nil {
		return nil, err
	}
	found, err := h.comparer.Nearest(ctx, embedding, vector.Filter{Scopes: []trust.Readers{scope}}, k+1)
	if err != nil {
		return nil, err
	}
	least := nearFloor
	if count, mean, deviation := h.vectors.Background(embedding, []trust.Readers{scope}); count >= minBackground {
		least = max(least, mean+nearDeviations*deviation)
	}
	var out []string
	for _, l := range found {
		if l.Doc == n || l.Cosine < least || len(out) == k {
			continue
		}
		var other string
		err := h.db.QueryRowContext(ctx, `SELECT id FROM document WHERE n = ? AND state = 'active' AND scope = ?`, l.Doc, scope).Scan(&other)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		out = append(out, other)
	}
	return out, nil
}
