package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/store"
)

// Scopes lists all scopes that hold something.
func (f *FTS) Scopes(ctx context.Context) ([]Scope, error) {
	scopes, err := store.Column[Scope](ctx, f.db, `SELECT scope FROM index_scope WHERE docs > 0 ORDER BY scope`)
	if err != nil {
		return nil, fmt.Errorf("list scopes: %w", err)
	}
	return scopes, nil
}

// sourceOrder is how all sources are read: neighbours follow each other,
// and what no longer holds comes behind them.
const sourceOrder = ` ORDER BY scope, conversation, 2, seq, n`

// indexedAtOnce is how many texts are made terms of before they are written.
const indexedAtOnce = 4000

// eachSource hands over all texts that are to be indexed, many at a time.
func eachSource(ctx context.Context, db store.DBTX, do func(all []source, done, total int) error) error {
	queries := []string{entrySource, turnSource}
	left, total := make([][]int64, len(queries)), 0
	for i, query := range queries {
		var err error
		if left[i], err = store.Column[int64](ctx, db, `SELECT abs(n) FROM (`+strings.Replace(query, "SELECT -n", "SELECT n", 1)+sourceOrder+`)`); err != nil {
			return err
		}
		total += len(left[i])
	}
	done := 0
	for i, query := range queries {
		for part := range slices.Chunk(left[i], indexedAtOnce) {
			all, err := sources(ctx, db, query+` AND n IN (SELECT value FROM json_each(?))`+sourceOrder, inJSON(part))
			if err != nil {
				return err
			}
			done += len(part)
			if err := do(all, done, total); err != nil {
				return err
			}
		}
	}
	return nil
}
