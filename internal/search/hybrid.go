package search

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reverie/internal/search/vector"
	"reverie/internal/store"
)

// Hybrid is the full-text index with vectors: what has the question's words, and
// what is near to it in meaning, ranked together. Without a vector of the question,
// because none can be had in time or the model makes nothing of it, it is the
// full-text index and nothing else. It is safe for concurrent use.
type Hybrid struct {
	*FTS
	vectors  *vector.Vectors // nil = words alone decide
	comparer vectorComparer
	server   Server // nil = the vectors are compared here
}

// nearer compares the vectors of documents with that of a question.
type vectorComparer interface {
	// Nearest finds the k documents of w that are nearest to q, nearest first. It is
	// ErrAway if nobody can look for them at the moment.
	Nearest(ctx context.Context, q []float32, w vector.Filter, k int) ([]vector.Similarity, error)
	// Compare says how near to q those of the documents are that have a vector.
	Compare(ctx context.Context, q []float32, docs []int64) ([]vector.Similarity, error)
}

// Server is where vectors are compared other than here. While it cannot, words do.
type Server interface {
	vectorComparer
	// Rebuild sends it all vectors again.
	Rebuild(ctx context.Context) error
}

// OpenHybrid joins f and v, which are of the same database; v = nil is f alone, s = nil compares the vectors here.
func OpenHybrid(f *FTS, v *vector.Vectors, s Server) *Hybrid {
	if s == nil {
		return &Hybrid{FTS: f, vectors: v, comparer: v}
	}
	return &Hybrid{FTS: f, vectors: v, comparer: s, server: s}
}

// maxNearest is how many candidates the vectors hand over.
const maxNearest = 100

const (
	minCosine     = .1 // below it no cosine says anything, whatever the best is
	minNearCosine = .4 // what has no word of the question must be so near to be ranked at all
)

// Search is that of FTS, with what is near in meaning.
func (h *Hybrid) Search(ctx context.Context, q Query) ([]Hit, error) {
	if len(q.Scopes) == 0 {
		return nil, nil
	}
	var embedding []float32
	if h.vectors != nil {
		embedding = h.vectors.EmbedQuery(ctx, clip(q.Text))
	}
	if embedding == nil {
		return h.FTS.Search(ctx, q)
	}
	m, err := h.lookUp(ctx, q)
	if err != nil || len(m.scopes) == 0 {
		return nil, err
	}
	found, err := h.addNearest(ctx, q, embedding, m)
	if errors.Is(err, vector.ErrUnavailable) {
		return h.FTS.Search(ctx, q)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	ranked := rank(m.question, m.corpus, found)
	near := h.outlierCosine(q, embedding, m.question)
	for i := range ranked {
		ranked[i].outlier = ranked[i].similarity != nil && ranked[i].similarity.Cosine >= near
	}
	return h.toHits(ctx, q, ranked)
}

// join adds the nearest to what was found by words, and tells of all how near
// they are.
func (h *Hybrid) addNearest(ctx context.Context, q Query, embedding []float32, m matches) ([]candidate, error) {
	w := vector.Filter{Scopes: q.Scopes, Past: q.Past}
	near, err := h.comparer.Nearest(ctx, embedding, w, maxNearest)
	if err != nil {
		return nil, err
	}
	there := make(map[int64]bool, len(m.found))
	for _, c := range m.found {
		there[c.doc] = true
	}
	var more []int64
	for _, l := range near {
		if !there[l.Doc] && max(l.Cosine, l.Window) >= minNearCosine {
			more = append(more, l.Doc)
		}
	}
	found := m.found
	if len(more) > 0 {
		added, err := h.loadNearest(ctx, q, m, more)
		if err != nil {
			return nil, err
		}
		found = slices.Concat(found, added)
	}
	docs := make([]int64, 0, len(found))
	for _, c := range found {
		docs = append(docs, c.doc)
	}
	like, err := h.comparer.Compare(ctx, embedding, docs)
	if err != nil {
		return nil, err
	}
	of := make(map[int64]*vector.Similarity, len(like))
	for i := range like {
		of[like[i].Doc] = &like[i]
	}
	for i := range found {
		found[i].similarity = of[found[i].doc]
	}
	return found, nil
}

// added are docs as they are ranked, but none that the question does not ask for.
func (h *Hybrid) loadNearest(ctx context.Context, q Query, m matches, docs []int64) ([]candidate, error) {
	rows, err := h.rowsOf(ctx, q, m.scopes, docs)
	if err != nil {
		return nil, err
	}
	added, err := h.load(ctx, rows)
	if err != nil {
		return nil, err
	}
	return added, h.addAdjacentTexts(ctx, added, m.found)
}

// rows are the rows of docs, but of none that the question does not ask for: the
// full-text index is never behind, and decides.
func (h *Hybrid) rowsOf(ctx context.Context, q Query, scopes, docs []int64) ([]int64, error) {
	query := `SELECT d.row FROM json_each(?) AS j CROSS JOIN index_doc AS d ON d.doc = j.value`
	rows, err := store.Column[int64](ctx, h.db, query, store.Array(docs))
	return slices.DeleteFunc(rows, func(row int64) bool {
		class := classOfRow(row)
		return !slices.Contains(scopes, scopeOfRow(row)) || class == classPast && !q.Past || class == classTurn && !q.Turns
	}), err
}

// A text without a word of a question is near to it in meaning if its cosine is so many standard
// deviations above those of texts taken anywhere from the same scopes, whatever the model and language.
const (
	outlierDeviations = 5
	minBackground     = 50 // of fewer it cannot be told
)

// outlier is the cosine from which on something stands out of the scopes of q; none
// does of a message that is about nothing.
func (h *Hybrid) outlierCosine(q Query, embedding []float32, question parsedQuery) float64 {
	const never = 2
	if !slices.ContainsFunc(question.terms, func(t term) bool { return t.isContent() }) {
		return never
	}
	n, mean, deviation := h.vectors.Background(embedding, q.Scopes)
	if n < minBackground {
		return never
	}
	return max(mean+outlierDeviations*deviation, minCosine)
}

// addMeaning fills in how near the candidates are, the nearest as 1, and reports
// whether any is. What has no vector, or not yet, counts as being as near as its
// words are.
func addSimilarity(all []scored) bool {
	own, with := minCosine, minCosine
	joined := false
	for i := range all {
		if l := all[i].similarity; l != nil {
			own, with, joined = max(own, l.Cosine), max(with, l.Window), true
		}
	}
	if !joined {
		return false
	}
	for i := range all {
		v := &all[i].values
		if l := all[i].similarity; l != nil {
			v[meaning], v[window] = max(0, l.Cosine/own), max(0, l.Window/with)
		} else {
			v[meaning], v[window] = v[fused], v[fused]
		}
	}
	return true
}

// Rebuild makes the index of words anew, then the vectors that are missing.
func (h *Hybrid) Rebuild(ctx context.Context) (documents int, err error) {
	if documents, err = h.FTS.Rebuild(ctx); err != nil || h.vectors == nil {
		return documents, err
	}
	if err := h.vectors.Rebuild(ctx); err != nil {
		return 0, fmt.Errorf("the words are indexed anew, not all vectors are: %w", err)
	}
	if h.server == nil {
		return documents, nil
	}
	if err := h.server.Rebuild(ctx); err != nil {
		return 0, fmt.Errorf("the words and vectors here are made anew, those on the server are not: %w", err)
	}
	return documents, nil
}
