package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/text"
)

// maxOutdated is how many retired entries of a scope dropOutdated compares, the newest first.
const maxOutdated = 500

// dropOutdated removes past messages that repeat a corrected or archived entry. After a person has
// corrected a line, its old text should not come back. Queries for the past keep them.
func dropOutdated(ctx context.Context, db *store.DB, q Query, hits []Hit) ([]Hit, error) {
	if q.Past || !slices.ContainsFunc(hits, func(h Hit) bool { return h.Turn != nil }) {
		return hits, nil
	}
	var old []string
	for _, scope := range q.Scopes {
		texts, err := store.Column[string](ctx, db, `SELECT text FROM memory AS m WHERE scope = ?1 AND state IN ('superseded', 'archived')
			AND NOT EXISTS (SELECT 1 FROM memory AS a WHERE a.scope = m.scope AND a.hash = m.hash AND a.state = 'active')
			ORDER BY n DESC LIMIT ?2`, scope, maxOutdated)
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		for _, t := range texts {
			// Very short texts occur in any message.
			if t = comparable(t); strings.Contains(t, " ") && utf8.RuneCountInString(t) >= 10 {
				old = append(old, " "+t+" ")
			}
		}
	}
	if len(old) == 0 {
		return hits, nil
	}
	repeats := func(t Turn) bool {
		words := " " + comparable(t.Text) + " "
		return slices.ContainsFunc(old, func(o string) bool { return strings.Contains(words, o) })
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Turn != nil && repeats(*h.Turn) })
	for i := range hits {
		hits[i].Around = slices.DeleteFunc(hits[i].Around, repeats)
	}
	return hits, nil
}

// comparable is text.PlainWords with one kind of apostrophe.
func comparable(said string) string { return strings.ReplaceAll(text.PlainWords(said), "’", "'") }
