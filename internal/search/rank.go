package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"reverie/internal/search/vector"
	"reverie/internal/text"
)

// feature is a ranking feature. Values are divided by the best candidate's, so they lie between 0
// and 1.
type feature int

const (
	fused    feature = iota // query terms in text, neighbours and date together
	body                    // … in the text
	date                    // the query names the day it was said
	session                 // query terms in the conversation of that day
	speaker                 // the query names its speaker or subject
	when                    // the query asks for a time, and it mentions one
	length                  // long texts hold more facts, except those of the assistant
	question                // it is a short question, which seldom holds the answer; a long one says something, too
	window                  // similarity of its vector, combined with those of its neighbours
	features = iota
)

// weights are the feature weights, measured on labelled sets; test/recall/README.md says which. They
// are few and rounded, so as not to overfit.
var weights = [features]float64{
	fused:    3.5,
	body:     1,
	date:     1.5,
	session:  2,
	speaker:  3,
	when:     1.5,
	length:   3,
	question: -4,
	window:   5,
}

// Parameters of the fused score, a BM25 over several fields.
const (
	neighbourWeight = .4
	dayWeight       = .3
	subjectWeight   = .2 // of who said it, to choose the candidates
	saturation      = .6 // k1
	lengthPenalty   = .3 // b
	pastFactor      = .3 // factor for superseded and archived documents
	answerFactor    = .3 // … for what the bot said; for all else if the query asks for that
)

// How many candidates of each class are ranked.
const (
	maxCandidates = 100
	maxUnlikely   = 40 // … where answerFactor applies, unless the query collects
)

// maxTerms is how many terms of a query, the rarest, are used to find candidates.
const maxTerms = 6

// term is one term of a query. It has all forms in which it may be indexed.
type term struct {
	forms     []string // the likeliest first
	weight    float64
	date      bool
	ideo      bool
	smallTalk bool // it says nothing about the topic
	df        int  // document frequency
	idf       float64
}

// parsedQuery is an analysed query.
type parsedQuery struct {
	terms []term
	names map[hash]bool // its words, unstemmed, to match names
	when  bool          // it asks for a time

	offset   [2]int // days: it asks for what was so long after something; 0 = it does not
	wishes   bool   // it asks for standing wishes
	collects bool   // it asks for all that was said of something
	answer   bool   // it asks for what the bot said

	count *termCounter // of terms
}

// isContent reports whether t is a word of the query that tells its topic. An answer should contain
// it.
func (t *term) isContent() bool { return !t.date && !t.smallTalk && t.weight == 1 }

// contextWeight is the weight of words of the context.
const contextWeight = .3

// parseQuery analyses q.
func parseQuery(q Query) parsedQuery {
	ws := text.Tokens(clip(q.Text))
	out := parsedQuery{names: map[hash]bool{}, when: text.AsksWhen(ws), wishes: q.Wishes}
	out.collects, out.answer = text.CollectsAll(q.Text), text.AsksForAnswer(q.Text)
	for _, w := range ws {
		out.names[hashOf(text.DropApostrophes(text.Unaccented(strings.TrimSuffix(w.Text, "'s"))))] = true
	}
	addTerms(&out, ws, 1)
	if from, to, ok := text.RelativeSpan(ws, q.Now); ok {
		out.terms = append(out.terms, spanTerm(from, to))
	}
	if from, to, ok := text.DaysAway(ws); ok {
		out.offset = [2]int{from, to}
	}
	if q.Context != "" {
		says := slices.ContainsFunc(out.terms, func(t term) bool { return t.date || !t.smallTalk })
		if !says && (text.IsQuestion(q.Text) || text.IsQuestion(q.Context)) { // "Yes, where is it?", or "Exactly." to a question
			addTerms(&out, text.Tokens(lastSentence(q.Context)), 1)
		}
		addTerms(&out, text.Tokens(clip(q.Context)), contextWeight)
	}
	return out
}

// setTerms sets the terms of q, whose forms are final.
func (q *parsedQuery) setTerms(terms []term) { q.terms, q.count = terms, newTermCounter(terms) }

func spanTerm(from, to time.Time) term {
	return term{forms: text.SpanTerms(from, to), weight: 1, date: true}
}

// lastSentence returns the last sentence of text, or its end if that is long.
func lastSentence(text string) string {
	const most = 200 // bytes
	text = strings.TrimRight(text, ".!?。！？ \n")
	text = text[max(0, strings.LastIndexAny(text, ".!?。！？\n"), len(text)-most):]
	return strings.ToValidUTF8(text, "")
}

// maxQuestion is how many bytes of a query are read.
const maxQuestion = 4000

func clip(s string) string {
	if len(s) <= maxQuestion {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuestion], "")
}

// addTerms adds the terms of ws that out lacks. Stop words are added only if there are no others.
func addTerms(out *parsedQuery, ws []text.Token, weight float64) {
	langs := text.Detect(ws)
	seen := map[string]bool{}
	for _, t := range out.terms {
		seen[t.forms[0]] = true
	}
	add := func(t term) {
		if len(t.forms) > 0 && t.forms[0] != "" && !seen[t.forms[0]] {
			seen[t.forms[0]] = true
			t.weight = weight
			out.terms = append(out.terms, t)
		}
	}
	before := len(out.terms)
	for _, strict := range []bool{true, false} {
		for i, w := range ws {
			if !strict || !text.IsStopWord(w, langs) {
				add(term{forms: text.Forms(w, langs), ideo: w.Ideo, smallTalk: text.IsSmallTalk(w, langs) || text.IsDate(ws, i)})
			}
		}
		if len(out.terms) > before || weight < 1 {
			break
		}
	}
	ignoreEndings(out.terms)
	for _, d := range text.DatesIn(ws) {
		add(term{forms: []string{d}, date: true})
	}
}

// ignoreEndings takes pairs with Hiragana for no content if there are others: they are endings and particles,
// or end one word and begin the next.
func ignoreEndings(terms []term) {
	isEnding := func(t term) bool { return t.ideo && text.HasHiragana(t.forms[0]) }
	if !slices.ContainsFunc(terms, func(t term) bool { return t.ideo && t.isContent() && !isEnding(t) }) {
		return
	}
	for i := range terms {
		terms[i].smallTalk = terms[i].smallTalk || isEnding(terms[i])
	}
}

// corpus has the statistics of the scopes of a query.
type corpus struct {
	docs  int     // number of documents
	words float64 // average length
}

// weigh sets the inverse document frequency of each term.
func (c corpus) weigh(terms []term) {
	n := float64(max(c.docs, 1))
	for i := range terms {
		df := min(float64(terms[i].df), n)
		terms[i].idf = terms[i].weight * math.Log(1+(n-df+.5)/(df+.5))
	}
}

// selectTerms returns the terms used to find candidates: the rarest ones, as long as they occur in
// at most budget documents altogether, which is the cost of the query.
func selectTerms(terms []term, budget int) []term {
	var found []term
	for _, t := range terms {
		if t.df > 0 {
			found = append(found, t)
		}
	}
	slices.SortStableFunc(found, func(a, b term) int { return cmp.Compare(b.idf, a.idf) })
	room := 2 * maxTerms
	for i := range found {
		t := &found[i]
		if room -= 2; t.ideo {
			room++ // a character bigram counts half a word
		}
		if room < 0 || i > 0 && t.df > budget {
			return found[:i]
		}
		budget -= t.df
	}
	return found
}

// indexedText is a document as the index stores it, under a row that it keeps. It must not be changed: searches share it.
type indexedText struct {
	doc                 int64 // document number, or minus the number of a turn
	row                 int64
	body                string // its terms, with spaces between
	terms               [fields][]hash
	place               int64 // number of its conversation; 0 = none
	seq                 int   // in it
	at                  int64 // Unix milliseconds
	session             int64 // equal for documents of one conversation on one day; 0 = none
	chars, words        int
	isQuestion, hasTime bool
	past                bool
	answer              bool // the bot said it
}

// candidate is a document to be ranked.
type candidate struct {
	*indexedText
	own        float64            // termCounter.score, to choose candidates
	near       []*indexedText     // its neighbours among the candidates
	similarity *vector.Similarity // nil = it or the query has no vector
}

// scored is a candidate with its feature values and score.
type scored struct {
	*candidate
	values  [features]float64
	score   float64
	covered float64
	related bool // near in meaning
}

// rank scores candidates and sorts them, the best first.
func rank(q parsedQuery, c corpus, candidates []candidate) []scored {
	all := computeAll(q, c, candidates)
	if q.wishes {
		return rankWishes(all)
	}
	scoreSessions(all)
	normaliseAll(all)
	addSimilarity(all)
	for i := range all {
		s := &all[i]
		for f, w := range weights {
			s.score += w * s.values[f]
		}
		if s.past {
			s.score *= pastFactor
		}
		if s.answer != q.answer {
			s.score *= answerFactor
		}
	}
	sortScored(all)
	return all
}

// sortScored sorts by score, the best first, of equal ones the newest.
func sortScored(all []scored) {
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.doc, a.doc)) })
}

// computeAll computes the features of candidates.
func computeAll(q parsedQuery, c corpus, candidates []candidate) []scored {
	all := make([]scored, len(candidates))
	var total float64
	for _, t := range q.terms {
		// A pair of Chinese characters that no text has ends one word and begins another. Each character counts.
		if chance := t.ideo && t.df == 0 && len(t.forms[0]) > len("字") && !text.HasHiragana(t.forms[0]); t.isContent() && !chance {
			total += t.idf
		}
	}
	for i := range candidates {
		all[i].candidate = &candidates[i]
		all[i].computeFeatures(q, c, total)
	}
	return all
}

// lengthFactor is how much a term counts for less in a longer text.
func (c corpus) lengthFactor(words int) float64 {
	if c.words == 0 {
		return 1
	}
	return 1 - lengthPenalty + lengthPenalty*float64(words)/c.words
}

func (s *scored) computeFeatures(q parsedQuery, c corpus, total float64) {
	long := c.lengthFactor(s.words)
	v := &s.values
	var ownIDF, contextIDF float64
	for _, f := range q.count.withNeighbours(s.candidate) {
		t := &q.terms[f.term]
		v[body] += t.idf * saturate(f.n[inBody], long)
		v[fused] += t.idf * saturate(f.n[inBody]+neighbourWeight*f.near+dayWeight*f.n[inDay], long)
		if t.date && f.n[inDay] > 0 {
			v[date] += t.idf
		}
		switch {
		case t.smallTalk:
		case t.weight == 1:
			ownIDF += t.idf
		default:
			contextIDF += t.idf
		}
	}
	// Dates and context words add to the coverage where they occur. Missing ones do not reduce it.
	switch {
	case ownIDF > 0 && total > 0:
		s.covered = min(1, (ownIDF+contextIDF)/total)
	case ownIDF > 0: // the query is only a date
		s.covered = 1
	}
	v[speaker] = flag(anyNameIn(s.terms[inSubject], q.names))
	v[when] = flag(q.when && s.hasTime)
	size := min(1, math.Log(1+float64(s.chars)/6)/4)
	if !s.answer { // an answer of the assistant is long whatever it holds
		v[length] = size
	}
	v[question] = flag(s.isQuestion) * (1 - size)
}

// saturate is the BM25 term-frequency saturation for n occurrences.
func saturate(n, long float64) float64 {
	if n == 0 {
		return 0
	}
	return n * (saturation + 1) / (n + saturation*long)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func anyNameIn(subject []hash, names map[hash]bool) bool {
	return slices.ContainsFunc(subject, func(name hash) bool { return names[name] })
}

// scoreSessions sets the session feature: the sum of the best three fused values of a conversation on
// one day.
func scoreSessions(all []scored) {
	best := map[int64][3]float64{}
	for i := range all {
		if all[i].session == 0 {
			continue
		}
		top := best[all[i].session]
		v := all[i].values[fused]
		for j := range top {
			if v > top[j] {
				v, top[j] = top[j], v
			}
		}
		best[all[i].session] = top
	}
	for i := range all {
		if top, ok := best[all[i].session]; ok {
			all[i].values[session] = top[0] + top[1] + top[2]
		}
	}
}

// normaliseAll divides features without a fixed scale by their maximum.
func normaliseAll(all []scored) {
	for _, f := range []feature{fused, body, date, session} {
		best := 0.0
		for i := range all {
			best = max(best, all[i].values[f])
		}
		if best > 0 {
			for i := range all {
				all[i].values[f] /= best
			}
		}
	}
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
