package memory

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/text"
)

// mostOutdated bounds what is compared for one answer: the newest that no longer hold.
const mostOutdated = 500

// outdated leaves out of hits the past messages that repeat what was corrected or put
// away since: a person who mended a line of their file need not hear the old one again.
// Who asks for the past gets them.
func outdated(ctx context.Context, db *sql.DB, q Query, hits []Hit) ([]Hit, error) {
	if q.Past || !slices.ContainsFunc(hits, func(h Hit) bool { return h.Turn != nil }) {
		return hits, nil
	}
	var old []string
	for _, scope := range q.Scopes {
		texts, err := store.Column[string](ctx, db, `SELECT text FROM memory AS m WHERE scope = ?1 AND state IN ('superseded', 'archived')
			AND NOT EXISTS (SELECT 1 FROM memory AS a WHERE a.scope = m.scope AND a.hash = m.hash AND a.state = 'active')
			ORDER BY n DESC LIMIT ?2`, scope, mostOutdated)
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		for _, t := range texts {
			// A word or two may stand in any message.
			if t = spoken(t); strings.Contains(t, " ") && utf8.RuneCountInString(t) >= 10 {
				old = append(old, " "+t+" ")
			}
		}
	}
	if len(old) == 0 {
		return hits, nil
	}
	repeats := func(t Turn) bool {
		words := " " + spoken(t.Text) + " "
		return slices.ContainsFunc(old, func(o string) bool { return strings.Contains(words, o) })
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Turn != nil && repeats(*h.Turn) })
	for i := range hits {
		hits[i].Around = slices.DeleteFunc(hits[i].Around, repeats)
	}
	return hits, nil
}

// spoken is PlainWords, whichever apostrophe was typed.
func spoken(said string) string { return strings.ReplaceAll(text.PlainWords(said), "’", "'") }
