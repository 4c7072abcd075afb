package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Hybrid is the full-text index combined with vectors. Candidates from both are ranked together.
// Without a query vector, for example after a timeout, it searches the full-text index only. It is
// safe for concurrent use.
type Hybrid struct {
	*FTS
	vectors  *vector.Vectors // nil = full-text search only
	comparer vectorComparer
	server   Server // nil = vectors are compared in this process
}

// vectorComparer compares document vectors with a query vector.
type vectorComparer interface {
	// Nearest returns the k documents matching w that are nearest to q, nearest first. It
	// returns vector.ErrUnavailable if they cannot be searched at the moment.
	Nearest(ctx context.Context, q []float32, w vector.Filter, k int) ([]vector.Similarity, error)
	// Compare returns the similarity to q of those docs that have a vector.
	Compare(ctx context.Context, q []float32, docs []int64) ([]vector.Similarity, error)
}

// Server compares vectors in another process. While it fails, search uses words only.
type Server interface {
	vectorComparer
	// Rebuild sends all vectors again.
	Rebuild(ctx context.Context) error
}

// OpenHybrid combines f and v, which must use the same database. With v = nil it only uses f; with
// s = nil it compares the vectors in this process.
func OpenHybrid(f *FTS, v *vector.Vectors, s Server) *Hybrid {
	if s == nil {
		return &Hybrid{FTS: f, vectors: v, comparer: v}
	}
	return &Hybrid{FTS: f, vectors: v, comparer: s, server: s}
}

// How many candidates the vector search returns. Loading them takes longer than finding them, and few are
// hits that words do not find.
const (
	minNearest    = 40
	nearestPerHit = 3
	maxNearest    = 100
)

const (
	minCosine     = .1 // lower cosines are noise
	minNearCosine = .4 // minimum for candidates without a common word
)

// Search is FTS.Search with candidates that are near in meaning.
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
	found, usual, err := h.addNearest(ctx, q, embedding, m)
	if errors.Is(err, vector.ErrUnavailable) {
		return h.FTS.Search(ctx, q)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	ranked := rank(m.question, m.corpus, found)
	says := slices.ContainsFunc(m.question.terms, func(t term) bool { return t.isContent() })
	for i := range ranked {
		ranked[i].judge(usual, says)
	}
	if says && !q.Wishes {
		if ranked, err = h.addPartners(ctx, q, m, ranked); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
	}
	return h.toHits(ctx, q, m, ranked)
}

// addNearest adds the nearest documents to the candidates of m. It sets the similarity of all.
func (h *Hybrid) addNearest(ctx context.Context, q Query, embedding []float32, m matches) (found []candidate, u usual, err error) {
	var near []vector.Similarity
	if !q.Wishes {
		near, err = h.comparer.Nearest(ctx, embedding, vector.Filter{Scopes: q.Scopes, Past: q.Past},
			min(max(minNearest, nearestPerHit*q.K), maxNearest))
	}
	if err != nil {
		return nil, u, err
	}
	there := make(map[int64]bool, len(m.found))
	for _, c := range m.found {
		there[c.doc] = true
	}
	var more []int64
	if u, err = h.usual(ctx, embedding, q.Scopes); err != nil {
		return nil, u, err
	}
	least := min(minNearCosine, u.above(relatedDeviations))
	for _, l := range near {
		if !there[l.Doc] && max(l.Cosine, l.Window) >= least {
			more = append(more, l.Doc)
		}
	}
	found = m.found
	if len(more) > 0 {
		added, err := h.loadNearest(ctx, q, m, more)
		if err != nil {
			return nil, u, err
		}
		found = slices.Concat(found, added)
	}
	docs := store.Map(found, func(c candidate) int64 { return c.doc })
	like, err := h.comparer.Compare(ctx, embedding, docs)
	if err != nil {
		return nil, u, err
	}
	of := make(map[int64]*vector.Similarity, len(like))
	for i := range like {
		of[like[i].Doc] = &like[i]
	}
	for i := range found {
		found[i].similarity = of[found[i].doc]
	}
	return found, u, nil
}

// loadNearest loads docs as candidates, without those that q excludes. The full-text index decides,
// because it is always current.
func (h *Hybrid) loadNearest(ctx context.Context, q Query, m matches, docs []int64) ([]candidate, error) {
	rows, err := store.Column[int64](ctx, h.db,
		`SELECT d.row FROM json_each(?) AS j CROSS JOIN index_doc AS d ON d.doc = j.value`, store.Array(docs))
	if err != nil {
		return nil, err
	}
	from, to := q.classes()
	added, err := h.load(ctx, slices.DeleteFunc(rows, func(row int64) bool {
		class := classOfRow(row)
		return !slices.Contains(m.scopes, scopeOfRow(row)) || class < from || class > to
	}))
	if err != nil {
		return nil, err
	}
	return added, h.addAdjacentTexts(ctx, added, m.found)
}

// How near a text is to a query is told by how near others of the same scopes are: in standard deviations
// above their mean. This works for any model and language.
const (
	outlierDeviations = 5   // it needs no common word to be a hit
	agreedDeviations  = 3   // … hardly one: words and meaning agree
	relatedDeviations = 2   // it is shown beside a hit
	partnerDeviations = 2.5 // it is another's partner
	minBackground     = 50  // minimum sample size
)

// usual is how near the texts of some scopes are to a vector.
type usual struct {
	n               int
	mean, deviation float64
}

func (h *Hybrid) usual(ctx context.Context, embedding []float32, scopes []trust.Readers) (u usual, err error) {
	if h.server == nil {
		u.n, u.mean, u.deviation = h.vectors.Background(embedding, scopes)
		return u, nil
	}
	u.n, u.mean, u.deviation, err = h.vectors.BackgroundStored(ctx, embedding, scopes)
	return u, err
}

// vectorOf returns the vector of a document; nil = it has none.
func (h *Hybrid) vectorOf(ctx context.Context, doc int64) ([]float32, error) {
	if h.server == nil {
		return h.vectors.Of(doc), nil
	}
	return h.vectors.OfStored(ctx, doc)
}

// above is the cosine that is so many standard deviations above the mean. It is never reached if there are
// too few texts to tell.
func (u usual) above(deviations float64) float64 {
	if u.n < minBackground {
		return 2
	}
	return max(u.mean+deviations*u.deviation, minCosine)
}

// judge sets whether s is near to the query in meaning, which counts as words that it covers. A query
// without content terms is near to nothing.
func (s *scored) judge(u usual, says bool) {
	if s.similarity == nil || !says {
		return
	}
	s.related = s.similarity.Cosine >= u.above(relatedDeviations)
	switch {
	case s.similarity.Cosine >= u.above(outlierDeviations):
		s.covered = 1
	case s.similarity.Cosine >= u.above(agreedDeviations) && s.covered >= DefaultFloor/3:
		s.covered = max(s.covered, DefaultFloor)
	}
}

// What contradicts a text or continues it is near to it, but often shares no word with the question: "I
// gave up alcohol", "three glasses of red". So the best documents bring their partners. Messages have
// neighbours instead.
const (
	maxPartnered = 3 // documents
	maxPartners  = 3 // of each
)

// addPartners ranks the partners of the best documents as far below these as they are unlike them.
func (h *Hybrid) addPartners(ctx context.Context, q Query, m matches, ranked []scored) ([]scored, error) {
	scores := map[int64]float64{}
	best := 0
	for _, s := range ranked {
		if best == maxPartnered {
			break
		}
		if s.session != 0 || s.past || s.covered < DefaultFloor {
			continue
		}
		embedding, err := h.vectorOf(ctx, s.doc)
		if err != nil {
			return nil, err
		}
		if embedding == nil {
			continue
		}
		best++
		found, err := h.comparer.Nearest(ctx, embedding, vector.Filter{Scopes: q.Scopes}, maxPartners+1)
		if err != nil {
			return nil, err
		}
		u, err := h.usual(ctx, embedding, q.Scopes)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if l.Doc != s.doc && l.Cosine >= u.above(partnerDeviations) {
				scores[l.Doc] = max(scores[l.Doc], s.score*l.Cosine)
			}
		}
	}
	for i := range ranked {
		s := &ranked[i]
		if score, ok := scores[s.doc]; ok {
			s.score, s.related = max(s.score, score), true
			delete(scores, s.doc)
		}
	}
	added, err := h.loadNearest(ctx, q, m, slices.Collect(maps.Keys(scores)))
	for i := range added {
		ranked = append(ranked, scored{candidate: &added[i], score: scores[added[i].doc], related: true})
	}
	sortScored(ranked)
	return ranked, err
}

// addSimilarity sets the feature of meaning, scaled to the best candidate. A candidate without a
// vector gets the value of its words, if another has one.
func addSimilarity(all []scored) {
	best, found := minCosine, false
	for i := range all {
		if l := all[i].similarity; l != nil {
			best, found = max(best, l.Window), true
		}
	}
	if !found {
		return
	}
	for i := range all {
		v := &all[i].values
		v[body] /= 2 // similarity replaces some of the weight of words
		if l := all[i].similarity; l != nil {
			v[window] = max(0, l.Window/best)
		} else {
			v[window] = v[fused]
		}
	}
}

// Rebuild rebuilds the full-text index, then computes missing vectors.
func (h *Hybrid) Rebuild(ctx context.Context) (documents int, err error) {
	if documents, err = h.FTS.Rebuild(ctx); err != nil || h.vectors == nil {
		return documents, err
	}
	if err := h.vectors.Rebuild(ctx); err != nil {
		return 0, fmt.Errorf("the full-text index is rebuilt, but not all vectors are: %w", err)
	}
	if h.server != nil {
		err = h.server.Rebuild(ctx)
	}
	return documents, store.Wrap(err, "the indexes here are rebuilt, but the server's is not")
}

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
	u, err := h.usual(ctx, embedding, []trust.Readers{scope})
	if err != nil {
		return nil, err
	}
	if u.n >= minBackground {
		least = max(least, u.mean+nearDeviations*u.deviation)
	}
	var out []string
	for _, l := range found {
		if l.Doc == n || l.Cosine < least || len(out) == k {
			continue
		}
		query := `SELECT id FROM document WHERE n = ? AND state = 'active' AND scope = ?`
		other, err := store.Column[string](ctx, h.db, query, l.Doc, scope)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		out = append(out, other...)
	}
	return out, nil
}
