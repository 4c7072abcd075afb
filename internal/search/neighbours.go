package search

import (
	"context"
	"fmt"

	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// A neighbour must be nearer than almost all texts of the same scope. This needs enough texts to
// compare. It must also be at least at nearFloor.
const (
	nearFloor      = .8
	nearDeviations = 2.576 // standard deviations: 99.5 %
)

// Neighbours returns the ids of up to k documents near the document id in meaning. All are active
// and in its scope; the nearest is first. It returns none without vectors, and computes none.
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
		const id = `SELECT id FROM document WHERE n = ? AND state = 'active' AND scope = ?`
		others, err := store.Column[string](ctx, h.db, id, l.Doc, scope)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		out = append(out, others...)
	}
	return out, nil
}
