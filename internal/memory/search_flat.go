package memory

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Flat is the index that needs none in the database: it keeps the terms of all
// texts in memory and looks at every one that has a term of the question. For
// some thousand entries that is as good as the full-text index.
type Flat struct {
	db    *sql.DB
	words analyser

	mu     sync.Mutex
	change int64 // memory_change.n that texts are of
	ready  bool
	texts  map[int64]*made // by document
	scopes map[Scope]*flatScope
}

// flatScope is what a scope holds.
type flatScope struct {
	docs  []int64 // ascending: past messages, then entries
	has   map[string][]int64
	words int
}

// OpenFlat returns the index in memory of what db holds. It reads that when it
// is asked first, and again what changed since.
func OpenFlat(db *sql.DB) *Flat { return &Flat{db: db} }

// Search implements index.
func (f *Flat) Search(ctx context.Context, q Query) ([]Hit, error) {
	ranked, err := f.search(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if len(ranked) == 0 {
		return nil, nil
	}
	return finish(ctx, f.db, q, ranked)
}

func (f *Flat) search(ctx context.Context, q Query) ([]scored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(ctx); err != nil {
		return nil, err
	}
	question := f.words.ask(q)
	var known corpus
	words := 0
	var scopes []*flatScope
	for _, name := range slices.Compact(slices.Sorted(slices.Values(q.Scopes))) {
		if s := f.scopes[name]; s != nil {
			scopes, known.docs, words = append(scopes, s), known.docs+len(s.docs), words+s.words
		}
	}
	if known.docs == 0 {
		return nil, nil
	}
	known.words = float64(words) / float64(known.docs)
	for i := range question.terms {
		for _, form := range question.terms[i].forms {
			for _, s := range scopes {
				question.terms[i].df += len(s.has[form])
			}
		}
	}
	known.weigh(question.terms)
	found := f.candidates(q, scopes, rarest(question.terms, math.MaxInt))
	return rank(question, known, found), nil
}

// candidates are the best documents of each kind by the terms.
func (f *Flat) candidates(q Query, scopes []*flatScope, terms []term) []candidate {
	scores := map[int64]float64{}
	for _, t := range terms {
		for _, s := range scopes {
			for _, form := range t.forms {
				for _, doc := range s.has[form] {
					scores[doc] += t.idf
					for _, n := range f.texts[doc].around {
						scores[n] += t.idf * nearShare
					}
				}
			}
		}
	}
	kinds := map[int64][]int64{}
	for doc := range scores {
		m := f.texts[doc]
		after := q.After.IsZero() || m.at >= q.After.UnixMilli()
		before := q.Before.IsZero() || m.at < q.Before.UnixMilli()
		wanted := m.class == classActive || m.class == classPast && q.Past || m.class == classTurn && q.Turns
		if after && before && wanted {
			kinds[m.class] = append(kinds[m.class], doc)
		}
	}
	var out []candidate
	for _, class := range []int64{classActive, classPast, classTurn} {
		docs := kinds[class]
		slices.SortFunc(docs, func(a, b int64) int {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a))
		})
		for _, doc := range docs[:min(len(docs), maxCandidates)] {
			out = append(out, f.texts[doc].candidate())
		}
	}
	return out
}

// candidate is m as it is ranked.
func (m *made) candidate() candidate {
	return candidate{doc: m.doc, body: m.body, near: m.near, day: m.day, subject: m.names, at: m.at, session: m.session,
		chars: m.chars, words: m.words, asks: m.marks&markAsks != 0, tells: m.marks&markTells != 0, past: m.class == classPast}
}

// refresh reads the texts if something changed, and analyses those that did.
func (f *Flat) refresh(ctx context.Context) error {
	var change int64
	if err := f.db.QueryRowContext(ctx, `SELECT n FROM memory_change`).Scan(&change); err != nil {
		return err
	}
	if f.ready && change == f.change {
		return nil
	}
	old := f.texts
	f.texts, f.scopes, f.ready = map[int64]*made{}, map[Scope]*flatScope{}, false
	var tail []*made // of the conversation that is being read
	err := eachSource(ctx, f.db, func(all []source, _, _ int) error {
		for _, s := range all {
			m := old[s.doc]
			if m == nil || m.source != s {
				fresh := f.words.make(s)
				m = &fresh
			}
			m.near, m.around = "", nil
			f.add(m)
			if len(tail) > 0 && tail[len(tail)-1].place != m.place {
				surround(tail)
				tail = tail[:0]
			}
			tail = append(tail, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	surround(tail)
	for _, s := range f.scopes {
		slices.Sort(s.docs)
	}
	f.change, f.ready = change, true
	return nil
}

func (f *Flat) add(m *made) {
	s := f.scopes[m.scope]
	if s == nil {
		s = &flatScope{has: map[string][]int64{}}
		f.scopes[m.scope] = s
	}
	f.texts[m.doc] = m
	s.docs, s.words = append(s.docs, m.doc), s.words+m.words
	for _, t := range distinct(m.body, m.day, m.names) {
		s.has[t] = append(s.has[t], m.doc)
	}
}

// surround gives each text of a conversation its neighbours.
func surround(texts []*made) {
	if len(texts) == 0 || texts[0].place == 0 {
		return
	}
	for i, m := range texts {
		var near []string
		for j := max(0, i-nearby); j <= min(i+nearby, len(texts)-1); j++ {
			o := texts[j]
			if gap := o.at - m.at; j == i || max(gap, -gap) > neighbourGap.Milliseconds() {
				continue
			}
			m.around = append(m.around, o.doc)
			if o.body != "" {
				near = append(near, o.body)
			}
		}
		m.near = strings.Join(near, " ")
	}
}

// Rebuild implements index.
func (f *Flat) Rebuild(ctx context.Context, progress func(done, total int)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready, f.texts = false, nil
	if err := f.refresh(ctx); err != nil {
		return fmt.Errorf("reindex: %w", err)
	}
	if progress != nil {
		progress(len(f.texts), len(f.texts))
	}
	return nil
}

// Verify implements index: what is in memory is read from the truth whenever
// that changes, so only whether it can be read remains to be seen.
func (f *Flat) Verify(ctx context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(ctx); err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	return nil, nil
}
