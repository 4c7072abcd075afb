package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// FTS is the full-text index of documents and past messages. It is updated in the transactions that
// change them (Update, IndexTurns), so it is always current. It is safe for concurrent use.
type FTS struct {
	db *store.DB

	mu    sync.Mutex
	known map[int64]*indexedText // by row; at most maxKnown
}

// maxKnown is how many rows stay in memory, in some 30 MB. Reading them again would be a third of a search.
const maxKnown = 40_000

// Open returns the index in db, which must have the current schema.
func Open(db *store.DB) *FTS { return &FTS{db: db, known: map[int64]*indexedText{}} }

// The rowid of index_fts encodes scope, class and a number that is not used again: a text that changes gets another row.
// So a search reads only the rows of its scopes, and the classes that are searched together are neighbours.
const (
	classPast = iota // superseded or archived
	classActive
	classTold   // an active document that an assistant said
	classTurn   // a message of a person
	classAnswer // a message of the bot

	classShift = 36
	scopeShift = 39
)

func rowOf(scope, class, number int64) int64 {
	return scope<<scopeShift | class<<classShift | number
}

// rowRange returns the first and last rowid of scope in the classes low to high.
func rowRange(scope, low, high int64) (first, last int64) {
	return rowOf(scope, low, 0), rowOf(scope, high, 1<<classShift-1)
}

func scopeOfRow(row int64) int64 { return row >> scopeShift }
func classOfRow(row int64) int64 { return row >> classShift & (1<<(scopeShift-classShift) - 1) }

// isAnswer reports whether the bot said the row.
func isAnswer(row int64) bool { return classOfRow(row) == classTold || classOfRow(row) == classAnswer }

// classes returns the first and last class to be searched.
func (q Query) classes() (from, to int64) {
	from, to = classActive, classTold
	if q.Past {
		from = classPast
	}
	if q.Turns {
		to = classAnswer
	}
	return from, to
}

// Search returns the best hits first. Any text is a valid query.
func (f *FTS) Search(ctx context.Context, q Query) ([]Hit, error) {
	m, err := f.lookUp(ctx, q)
	if err != nil || len(m.found) == 0 {
		return nil, err
	}
	return f.toHits(ctx, q, m, rank(m.question, m.corpus, m.found))
}

// matches are the candidates that contain terms of a query.
type matches struct {
	scopes   []int64 // numbers of the scopes that are not empty
	question parsedQuery
	corpus   corpus
	found    []candidate
}

func (f *FTS) lookUp(ctx context.Context, q Query) (m matches, err error) {
	if m.scopes, m.corpus, err = f.scopeNumbers(ctx, q.Scopes); err != nil || len(m.scopes) == 0 {
		return m, err
	}
	if q.Wishes {
		if m.found, err = f.standingWishes(ctx, m.scopes); err != nil || len(m.found) == 0 {
			return m, err
		}
	}
	m.question = parseQuery(q)
	if err := f.weigh(ctx, m, m.question.terms); err != nil {
		return m, fmt.Errorf("search: %w", err)
	}
	m.question.setTerms(m.question.terms)
	if q.Wishes {
		return m, nil
	}
	m.found, err = f.candidates(ctx, q, m, selectTerms(m.question.terms, maxPostings))
	if err == nil && m.question.offset != [2]int{} {
		err = f.addOffset(ctx, q, &m)
	}
	if err == nil && m.question.collects {
		err = f.addTopic(ctx, q, &m)
	}
	return m, err
}

// addOffset resolves the offset of a question, such as "two weeks before the move", from the day of the
// best candidate on, and searches for what was said then.
func (f *FTS) addOffset(ctx context.Context, q Query, m *matches) error {
	ranked := rank(m.question, m.corpus, m.found)
	if len(ranked) == 0 || ranked[0].at == 0 {
		return nil
	}
	day := func(n int) time.Time { return time.UnixMilli(ranked[0].at).UTC().AddDate(0, 0, n) }
	days := []term{spanTerm(day(m.question.offset[0]), day(m.question.offset[1]+1))}
	if err := f.weigh(ctx, *m, days); err != nil {
		return err
	}
	return f.addToSearch(ctx, q, m, days)
}

// Messages of a topic seldom name it. So a question that collects is searched for once more, with the words
// that the best candidates have in common (pseudo relevance feedback).
const (
	topicSources = 10 // candidates
	topicTerms   = 12
)

func (f *FTS) addTopic(ctx context.Context, q Query, m *matches) error {
	ranked := rank(m.question, m.corpus, m.found)
	count := map[string]int{}
	for _, s := range ranked[:min(len(ranked), topicSources)] {
		said := []string{s.body}
		for _, beside := range s.near {
			said = append(said, beside.body)
		}
		for _, t := range distinctTerms(said...) {
			if _, asked := m.question.count.forms[hashOf(t)]; !asked && !strings.HasPrefix(t, "date") {
				count[t]++
			}
		}
	}
	var topic []term
	for t, n := range count {
		if n > 1 {
			topic = append(topic, term{forms: []string{t}, weight: contextWeight * float64(n) / topicSources})
		}
	}
	if err := f.weigh(ctx, *m, topic); err != nil {
		return err
	}
	slices.SortFunc(topic, func(a, b term) int { return cmp.Or(cmp.Compare(b.idf, a.idf), cmp.Compare(a.forms[0], b.forms[0])) })
	return f.addToSearch(ctx, q, m, topic[:min(len(topic), topicTerms)])
}

// weigh sets the frequencies and weights of terms in the scopes of m.
func (f *FTS) weigh(ctx context.Context, m matches, terms []term) error {
	err := f.loadFrequencies(ctx, m.scopes, terms)
	m.corpus.weigh(terms)
	return err
}

// addToSearch adds weighed terms to the query of m, and the candidates that have them.
func (f *FTS) addToSearch(ctx context.Context, q Query, m *matches, terms []term) error {
	m.question.setTerms(append(m.question.terms, terms...))
	there := positionsByRow(m.found)
	more, err := f.candidates(ctx, q, *m, selectTerms(terms, maxPostings))
	for _, c := range more {
		if _, found := there[c.row]; !found {
			m.found = append(m.found, c)
		}
	}
	return err
}

// maxPostings is how many documents of a scope are scored per query; of a scope and class, if terms are frequent.
const maxPostings = 400

// scopeNumbers maps scope names to numbers and sums up their statistics. Empty scopes are left out.
func (f *FTS) scopeNumbers(ctx context.Context, names []trust.Readers) (numbers []int64, stats corpus, err error) {
	words := 0
	err = store.Each(ctx, f.db, func(row store.Row) error {
		var no int64
		var docs, n int
		err := row.Scan(&no, &docs, &n)
		if docs > 0 {
			numbers, stats.docs, words = append(numbers, no), stats.docs+docs, words+n
		}
		return err
	}, `SELECT no, docs, words FROM index_scope WHERE scope IN (SELECT value FROM json_each(?)) ORDER BY no`, store.Array(names))
	if err != nil {
		return nil, stats, fmt.Errorf("search: %w", err)
	}
	if stats.docs > 0 {
		stats.words = float64(words) / float64(stats.docs)
	}
	return numbers, stats, nil
}

// loadFrequencies sets the document frequency of terms in scopes. It drops forms that do not occur.
func (f *FTS) loadFrequencies(ctx context.Context, scopes []int64, terms []term) error {
	var forms []string
	for _, t := range terms {
		forms = append(forms, t.forms...)
	}
	df, err := store.Pairs[string, int](ctx, f.db, `SELECT t.value, sum(i.df) FROM json_each(?) AS t CROSS JOIN json_each(?) AS s
		CROSS JOIN index_term AS i ON i.scope = s.value AND i.term = t.value GROUP BY t.value`, store.Array(forms), store.Array(scopes))
	if err != nil {
		return err
	}
	for i := range terms {
		t := &terms[i]
		var there []string
		for _, form := range t.forms {
			if n := df[form]; n > 0 {
				there = append(there, form)
				t.df += n
			}
		}
		if len(there) > 0 {
			t.forms = there
		}
	}
	return nil
}

// ftsAnyOf is the FTS5 expression for documents with any of terms. Terms are letters and digits,
// and each is quoted, so user text cannot inject syntax.
func ftsAnyOf(terms []term) string {
	var b strings.Builder
	for _, t := range terms {
		for _, form := range t.forms {
			if b.Len() > 0 {
				b.WriteString(" OR ")
			}
			b.WriteString(`"` + strings.ReplaceAll(form, `"`, `""`) + `"`)
		}
	}
	return b.String()
}

// candidates returns the best documents of each class for terms, and their neighbours.
func (f *FTS) candidates(ctx context.Context, q Query, m matches, terms []term) ([]candidate, error) {
	rows, err := f.matchingRows(ctx, q, m.scopes, terms)
	if err != nil || len(rows) == 0 {
		return nil, store.Wrap(err, "search")
	}
	found, err := f.load(ctx, rows)
	if err != nil {
		return nil, err
	}
	count := m.question.count
	chosen := count.indexesOf(terms)
	for i := range found {
		found[i].own = count.score(found[i].indexedText, m.corpus, chosen)
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.own, a.own) })
	byClass := map[int64][]candidate{}
	for _, c := range found {
		most := maxCandidates
		if c.answer != m.question.answer && !m.question.collects {
			most = maxUnlikely
		}
		if class := classOfRow(c.row); len(byClass[class]) < most {
			byClass[class] = append(byClass[class], c)
		}
	}
	var best, others []candidate
	for _, group := range [][]int64{{classActive, classTold}, {classPast}, {classTurn, classAnswer}} {
		var all []candidate
		for _, class := range group {
			all = append(all, byClass[class]...)
		}
		n := min(len(all), maxExplained)
		best, others = append(best, all[:n]...), append(others, all[n:]...)
	}
	return f.withNeighbours(ctx, append(best, others...), len(best))
}

// matchingRows returns the newest rows that contain one of terms. Opening a full-text query takes longer than reading a row
// of it, so rare terms are looked up in all classes of a scope at once, and only frequent ones in each.
func (f *FTS) matchingRows(ctx context.Context, q Query, scopes []int64, terms []term) (all []int64, err error) {
	from, to := q.classes()
	step, df := to-from+1, 0
	for _, t := range terms {
		df += t.df
	}
	switch {
	case df == 0:
		return nil, nil
	case df > maxPostings:
		step = 1
	}
	expression := ftsAnyOf(terms)
	for _, scope := range scopes {
		for class := from; class <= to; class += step {
			first, last := rowRange(scope, class, class+step-1)
			// FTS5 looks an expression up among the rows of all scopes; without rows in range, that is left out.
			there, err := store.Value[bool](ctx, f.db, `SELECT EXISTS (SELECT 1 FROM index_doc WHERE row BETWEEN ? AND ?)`, first, last)
			if err != nil {
				return nil, err
			}
			if !there {
				continue
			}
			rows, err := store.Column[int64](ctx, f.db, `SELECT rowid FROM index_fts WHERE index_fts MATCH ? AND rowid BETWEEN ? AND ?
				ORDER BY rowid DESC LIMIT ?`, expression, first, last, maxPostings)
			if err != nil {
				return nil, err
			}
			all = append(all, rows...)
		}
	}
	return all, nil
}

// load returns the ranking data of rows, in their order, without rows that were deleted.
func (f *FTS) load(ctx context.Context, rows []int64) ([]candidate, error) {
	all := make([]candidate, len(rows))
	missing := map[int64]int{} // row → index
	f.mu.Lock()
	for i, row := range rows {
		if all[i].indexedText = f.known[row]; all[i].indexedText == nil {
			missing[row] = i
		}
	}
	f.mu.Unlock()
	if len(missing) == 0 {
		return all, nil
	}
	read, err := store.List(ctx, f.db, func(row store.Row) (*indexedText, error) {
		var t indexedText
		var marks int
		var day, subject string
		err := row.Scan(&t.row, &t.doc, &t.place, &t.seq, &t.at, &t.session, &t.chars, &t.words, &marks, &t.body, &day, &subject)
		t.terms = [fields][]hash{inBody: hashesIn(t.body), inDay: hashesIn(day), inSubject: hashesIn(subject)}
		t.isQuestion, t.hasTime = marks&markQuestion != 0, marks&markTime != 0
		t.past, t.answer = classOfRow(t.row) == classPast, isAnswer(t.row)
		return &t, err
	}, `SELECT d.row, d.doc, d.conversation, d.seq, d.at, d.conversation_day, d.chars, d.words, d.flags, d.body, d.day, d.subject
		FROM json_each(?) AS j CROSS JOIN index_doc AS d ON d.row = j.value`, store.Array(slices.Collect(maps.Keys(missing))))
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known)+len(read) > maxKnown {
		clear(f.known)
	}
	for _, t := range read {
		f.known[t.row], all[missing[t.row]].indexedText = t, t
	}
	return slices.DeleteFunc(all, func(c candidate) bool { return c.indexedText == nil }), err
}

// drop removes rows from memory. A search that runs until they are deleted may bring one back, which none finds afterwards.
func (f *FTS) drop(rows []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, row := range rows {
		delete(f.known, row)
	}
}

// toHits converts ranked candidates to hits: some more documents than q has places for, as the caller may drop duplicates.
func (f *FTS) toHits(ctx context.Context, q Query, m matches, ranked []scored) ([]Hit, error) {
	if !slices.ContainsFunc(ranked, func(s scored) bool { return s.covered >= q.Floor }) {
		return nil, nil
	}
	seen := store.Map(q.Scopes, func(scope trust.Readers) int64 { return placeOf(scope, q.Seen.Conversation, true) })
	isSeen := func(s scored) bool {
		return q.Seen.Conversation != "" && s.seq >= q.Seen.From && slices.Contains(seen, s.place)
	}
	hasPlace := q.Places(DefaultK)
	ranked = slices.DeleteFunc(ranked, func(s scored) bool {
		common := s.covered < q.Floor/3 && !s.related && !m.question.collects // hardly more than a common word
		return common || !hasPlace(s.doc > 0, isSeen(s))
	})
	turns, err := f.loadTurns(ctx, ranked)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits := make([]Hit, 0, len(ranked))
	for _, s := range ranked {
		h := turns[-s.doc]
		if s.doc < 0 && h.Turn == nil { // deleted in the meantime
			continue
		}
		h.At = time.UnixMilli(s.at).UTC()
		h.Doc, h.Score, h.Covered, h.Near, h.Seen = max(s.doc, 0), round(s.score), round(s.covered), s.related, isSeen(s)
		hits = append(hits, h)
	}
	return hits, nil
}

// CountEntries returns the number of memories in the index, with outdated ones.
func CountEntries(ctx context.Context, db store.DBTX) (int, error) {
	n, err := store.Value[int](ctx, db, `SELECT count(*) FROM index_doc WHERE doc > 0`)
	return n, store.Wrap(err, "search: count memories")
}
