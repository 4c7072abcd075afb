package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"reverie/internal/search/vector"
	"reverie/internal/text"
)

// feature is one reason why a candidate may be what is looked for. Values are
// divided by the best among the candidates, so that they lie between 0 and 1.
type feature int

const (
	fused    feature = iota // the question's terms in text, neighbours and date together
	body                    // … in the text
	near                    // … in what was said around it
	date                    // the date asked for is the day it was said
	session                 // the conversation of that day has more of the question
	speaker                 // the question names who says it, or whom it is about
	when                    // the question asks when, and it tells a time
	length                  // long texts hold more facts
	question                // it asks itself, and seldom holds the answer
	meaning                 // its meaning is near (indexes with vectors)
	window                  // … with its neighbours
	features = iota
)

// weights say how much each feature counts: the one table to turn. They come
// from measurements on labelled conversations, and are rounded so that they are
// about right everywhere and fitted nowhere. The second column is for a question
// that has a vector: meaning then takes over from words that only stand near.
var weights = [features]struct{ words, joined float64 }{
	fused:    {3.5, 3.0},
	body:     {1.0, .4},
	near:     {.9, .3},
	date:     {3.0, 3.2},
	session:  {2.3, 2.0},
	speaker:  {2.0, 2.0},
	when:     {2.3, 2.4},
	length:   {3.0, 4.0},
	question: {-.8, -.9},
	meaning:  {0, 1.2},
	window:   {0, 4.3},
}

// How much a term counts in the fields of the fused score, and how soon more of
// the same adds nothing.
const (
	neighbourWeight = .4
	dayWeight       = .3
	saturation      = .6 // k1
	lengthPenalty   = .3 // b: how much a long text's terms count less
	pastFactor      = .3 // for what no longer holds
)

// maxCandidates is how many an index hands over for ranking, of each kind.
const maxCandidates = 100

// maxTerms is how many terms of a question look for candidates: the rarest.
const maxTerms = 6

// term is one thing that a question looks for, in all forms it may be stored in.
type term struct {
	forms     []string // the likeliest first
	weight    float64
	date      bool
	ideo      bool
	smallTalk bool // what a message is about does not show in it
	df        int  // documents with it
	idf       float64
}

// asked is a question, analysed.
type parsedQuery struct {
	terms []term
	names map[string]bool // its words as they stand
	when  bool
}

// own reports whether t is a word of the question itself that tells what it is
// about, so that an answer should have something of it.
func (t *term) isContent() bool { return !t.date && !t.smallTalk && t.weight == 1 }

// contextWeight is what words of the context count.
const contextWeight = .3

// ask analyses q.
func parseQuery(q Query) parsedQuery {
	ws := text.Tokens(clip(q.Text))
	out := parsedQuery{names: map[string]bool{}, when: text.AsksWhen(ws)}
	for _, w := range ws {
		out.names[text.DropApostrophes(text.Unaccented(strings.TrimSuffix(w.Text, "'s")))] = true
	}
	addTerms(&out, ws, 1)
	if from, to, ok := text.RelativeSpan(ws, q.Now); ok {
		out.terms = append(out.terms, term{forms: text.SpanTerms(from, to), weight: 1, date: true})
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

// lastOf is the last sentence of text, or the end of it.
func lastSentence(text string) string {
	const most = 200 // bytes
	text = strings.TrimRight(text, ".!?。！？ \n")
	text = text[max(0, strings.LastIndexAny(text, ".!?。！？\n"), len(text)-most):]
	return strings.ToValidUTF8(text, "")
}

// maxQuestion is how much of a question is read, in bytes.
const maxQuestion = 4000

func clip(s string) string {
	if len(s) <= maxQuestion {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuestion], "")
}

// addTerms adds the terms of ws that out does not have yet, without the words
// that say little, unless there are no others.
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
		for _, w := range ws {
			if !strict || !text.IsStopWord(w, langs) {
				add(term{forms: text.Forms(w, langs), ideo: w.Ideo, smallTalk: text.IsSmallTalk(w, langs)})
			}
		}
		if len(out.terms) > before || weight < 1 {
			break
		}
	}
	for _, d := range text.DatesIn(ws) {
		add(term{forms: []string{d}, date: true})
	}
}

// corpus is what is known of the texts in the scopes of a question.
type corpus struct {
	docs  int     // how many
	words float64 // of one, on average
}

// weigh gives each term its weight by how rare it is.
func (c corpus) weigh(terms []term) {
	n := float64(max(c.docs, 1))
	for i := range terms {
		df := min(float64(terms[i].df), n)
		terms[i].idf = terms[i].weight * math.Log(1+(n-df+.5)/(df+.5))
	}
}

// rarest picks the terms that candidates are looked up by: the rarest that exist, as long as all of
// them together stand in no more than budget documents, which a question costs.
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
			room++ // pairs of characters tell half as much as a word
		}
		if room < 0 || i > 0 && t.df > budget {
			return found[:i]
		}
		budget -= t.df
	}
	return found
}

// candidate is a document that may be a hit, as the index stores it.
type candidate struct {
	doc                 int64 // of an entry its number, of a turn minus its number
	row                 int64
	body, day, subject  string   // terms, a space between
	near                []string // the bodies of those of its neighbours that are candidates too
	at                  int64    // Unix milliseconds
	session             int64    // equal for documents of one conversation on one day; 0 = none
	chars, words        int
	isQuestion, hasTime bool // it is a question; it tells a time
	past                bool
	similarity          *vector.Similarity // nil = it has no vector, or the question has none
}

// scored is a candidate with its score.
type scored struct {
	*candidate
	values  [features]float64
	score   float64
	covered float64
	outlier bool // its meaning is so near that it needs no word of the question
}

// rank orders candidates, the best first.
func rank(q parsedQuery, c corpus, candidates []candidate) []scored {
	all := make([]scored, len(candidates))
	forms := formIndex(q.terms)
	var total float64
	for _, t := range q.terms {
		if t.isContent() {
			total += t.idf
		}
	}
	for i := range candidates {
		all[i].candidate = &candidates[i]
		all[i].computeFeatures(q, c, forms, total)
	}
	addSessions(all)
	normaliseAll(all)
	joined := addSimilarity(all)
	for i := range all {
		s := &all[i]
		for f, w := range weights {
			if joined {
				s.score += w.joined * s.values[f]
			} else {
				s.score += w.words * s.values[f]
			}
		}
		if s.past {
			s.score *= pastFactor
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return cmp.Compare(b.doc, a.doc) // the newer
	})
	return all
}

// formIndex leads from a stored term to the question's terms that it is a form of.
func formIndex(terms []term) map[string]int {
	out := map[string]int{}
	for i, t := range terms {
		for _, f := range t.forms {
			if _, taken := out[f]; !taken {
				out[f] = i
			}
		}
	}
	return out
}

// counts are how often each term of the question stands in a field.
type counts []int

func (n counts) add(field string, forms map[string]int) {
	for t := range strings.FieldsSeq(field) {
		if i, ok := forms[t]; ok {
			n[i]++
		}
	}
}

func (s *scored) computeFeatures(q parsedQuery, c corpus, forms map[string]int, total float64) {
	var in struct{ body, near, day, who counts }
	for _, n := range []*counts{&in.body, &in.near, &in.day, &in.who} {
		*n = make(counts, len(q.terms))
	}
	in.body.add(s.body, forms)
	for _, beside := range s.near {
		in.near.add(beside, forms)
	}
	in.day.add(s.day, forms)
	in.who.add(s.subject, forms)
	long := 1.0
	if c.words > 0 {
		long = 1 - lengthPenalty + lengthPenalty*float64(s.words)/c.words
	}
	v := &s.values
	var own, beside float64
	for i, t := range q.terms {
		b, e, d := float64(in.body[i]), float64(in.near[i]), float64(in.day[i])
		v[body] += t.idf * saturate(b, long)
		v[near] += t.idf * saturate(e, 1)
		v[fused] += t.idf * saturate(b+neighbourWeight*e+dayWeight*d, long)
		if t.date && d > 0 {
			v[date] += t.idf
		}
		switch {
		case b+e+d == 0 && in.who[i] == 0 || t.smallTalk:
		case t.weight == 1:
			own += t.idf
		default:
			beside += t.idf
		}
	}
	// A date asked for counts where it is met, and words of what was said before where
	// the question is; that they are missing says nothing.
	switch {
	case own > 0 && total > 0:
		s.covered = min(1, (own+beside)/total)
	case own > 0: // it asks for nothing but what was that day
		s.covered = 1
	}
	v[speaker] = flag(anyNameIn(s.subject, q.names))
	v[when] = flag(q.when && s.hasTime)
	v[length] = min(1, math.Log(1+float64(s.chars)/6)/4)
	v[question] = flag(s.isQuestion)
}

// saturated is what n occurrences count.
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

func anyNameIn(subject string, words map[string]bool) bool {
	for name := range strings.FieldsSeq(subject) {
		if words[name] {
			return true
		}
	}
	return false
}

// addSessions gives each candidate what its conversation of that day has of the
// question, in its best three texts.
func addSessions(all []scored) {
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

// normaliseAll divides the features that have no scale of their own by the best.
func normaliseAll(all []scored) {
	for _, f := range []feature{fused, body, near, date, session} {
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
