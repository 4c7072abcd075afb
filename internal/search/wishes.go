package search

import (
	"cmp"
	"context"
	"slices"

	"reverie/internal/store"
)

// Standing wishes apply to messages that share no word with them: "I can't stand big hotels" to "Where
// should I stay in Lisbon?". So all of them are candidates, and the newest count more.
const (
	maxWishes     = 300 // of a scope and class, the newest
	recencyWeight = .15 // of the newest; the oldest has 0
	judgedWeight  = .25 // of entries
)

// standingWishes returns the standing wishes in scopes.
func (f *FTS) standingWishes(ctx context.Context, scopes []int64) (all []candidate, err error) {
	for _, class := range []int64{classActive, classTurn} {
		for _, scope := range scopes {
			first, last := rowRange(scope, class, class)
			// 4 is markWish, as in the index index_doc_wish.
			rows, err := store.Column[int64](ctx, f.db,
				`SELECT row FROM index_doc WHERE flags & 4 AND row BETWEEN ? AND ? ORDER BY row DESC LIMIT ?`, first, last, maxWishes)
			if err != nil {
				return nil, store.Wrap(err, "search")
			}
			some, err := f.load(ctx, rows)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

// rankWishes scores standing wishes by the words and the meaning they have of the query, and by age, and
// sorts them, the best first.
func rankWishes(all []scored) []scored {
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(a.at, b.at) })
	for i := range all {
		s := &all[i]
		s.score = s.covered + recencyWeight*float64(i)/float64(len(all))
		if s.doc > 0 { // a model or a person judged it to be one
			s.score += judgedWeight
		}
		if s.similarity != nil {
			s.score += s.similarity.Cosine
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return all
}
