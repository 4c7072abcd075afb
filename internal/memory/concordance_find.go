package memory

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// matching is what FTS.matching finds, byte for byte.
func (c *concordance) matching(q Query, words *analyser) (m matches) {
	if m.scopes, m.known = c.numbered(q.Scopes); len(m.scopes) == 0 {
		return m
	}
	m.question = words.ask(q)
	c.frequencies(m.scopes, m.question.terms)
	m.known.weigh(m.question.terms)
	if terms := rarest(m.question.terms, maxPostings); len(terms) > 0 {
		m.found = c.candidates(m.question, c.best(q, m.scopes, terms))
	}
	return m
}

// frequencies is FTS.frequencies, where a form of two terms counts twice in each.
func (c *concordance) frequencies(scopes []int64, terms []term) {
	times := map[string]int{}
	for i := range terms {
		for _, form := range terms[i].forms {
			times[form]++
		}
	}
	for i := range terms {
		t := &terms[i]
		var there []string
		for _, form := range t.forms {
			n, known := c.numbers[form]
			if !known {
				continue
			}
			df := 0
			for _, no := range scopes {
				df += len(c.scopes[no].has[n]) * times[form]
			}
			if df > 0 {
				there = append(there, form)
				t.df += df
			}
		}
		if len(there) > 0 {
			t.forms = there
		}
	}
}

// phrase is a form that texts are looked up by.
type phrase struct {
	number uint32
	narrow bool
	idf    float64 // as bm25 has it
}

// The numbers of bm25 in SQLite, and how much a term counts in each column.
const (
	bm25K, bm25B                              = 1.2, .75
	bodyColumn, nearColumn, dayColumn, byline = 1, .4, .3, .2
)

// best are the best texts of each kind by the terms, as bestRows chooses them.
func (c *concordance) best(q Query, scopes []int64, terms []term) []int32 {
	var phrases []phrase
	for _, t := range terms {
		for _, form := range t.forms {
			if n, there := c.numbers[form]; there {
				phrases = append(phrases, phrase{number: n, narrow: t.narrow})
			}
		}
	}
	kinds := c.kinds(q, scopes, c.texts(phrases))
	s := scorer{c: c, phrases: phrases, length: float64(c.tokens) / float64(len(c.at)), counts: newTallies(phrases)}
	var out []int32
	for _, class := range kinds {
		var all []scoredText
		for _, texts := range class {
			all = append(all, s.best(texts)...)
		}
		slices.SortStableFunc(all, func(a, b scoredText) int { return cmp.Compare(a.score, b.score) })
		for _, x := range all[:min(len(all), maxCandidates)] {
			out = append(out, x.slot)
		}
	}
	return out
}

// texts are those that have any of phrases, in whatever scope, for that is what
// makes a phrase rare: its idf is filled in.
func (c *concordance) texts(phrases []phrase) []int32 {
	last := make([]uint16, len(c.docs)) // the phrase that was found in each
	var all []int32
	for i := range phrases {
		p, hits := &phrases[i], 0
		hit := func(slot int32) {
			if last[slot] == 0 {
				all = append(all, slot)
			}
			if last[slot] != uint16(i+1) {
				last[slot] = uint16(i + 1)
				hits++
			}
		}
		for _, s := range c.scopes {
			for _, slot := range s.has[p.number] {
				d := &c.docs[slot]
				inBody := slices.Contains(d.bodyTerms(), p.number)
				if p.narrow {
					if inBody || slices.Contains(d.subjectTerms(), p.number) {
						hit(slot)
					}
					continue
				}
				hit(slot)
				for _, near := range d.around {
					if inBody && near >= 0 {
						hit(near)
					}
				}
			}
		}
		n := float64(hits)
		if p.idf = math.Log((float64(len(c.at)) - n + .5) / (n + .5)); p.idf <= 0 {
			p.idf = 1e-6
		}
	}
	return all
}

// kinds divides texts, the newest first, by class and scope; those that the
// question does not ask for are left out.
func (c *concordance) kinds(q Query, scopes []int64, texts []int32) [classTurn + 1][][]int32 {
	var out [classTurn + 1][][]int32
	for class := range out {
		out[class] = make([][]int32, len(scopes))
	}
	for _, slot := range texts {
		d := &c.docs[slot]
		class, at := classOf(d.row), slices.Index(scopes, scopeOf(d.row))
		if at < 0 || class == classPast && !q.Past || class == classTurn && !q.Turns ||
			!q.After.IsZero() && d.at < q.After.UnixMilli() || !q.Before.IsZero() && d.at >= q.Before.UnixMilli() {
			continue
		}
		out[class][at] = append(out[class][at], slot)
	}
	for _, class := range out {
		for i, texts := range class {
			if len(texts) > maxPostings {
				slices.SortFunc(texts, func(a, b int32) int { return cmp.Compare(c.docs[b].row, c.docs[a].row) })
				class[i] = texts[:maxPostings]
			}
		}
	}
	return out
}

// scoredText is a text and its score; the lowest is the best, and of equals the
// newest.
type scoredText struct {
	slot  int32
	row   int64
	score float64
}

func (a scoredText) compare(b scoredText) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(b.row, a.row))
}

// worstFirst is a heap.
type worstFirst []scoredText

func (w worstFirst) Len() int           { return len(w) }
func (w worstFirst) Less(i, j int) bool { return w[i].compare(w[j]) > 0 }
func (w worstFirst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worstFirst) Push(x any)        { *w = append(*w, x.(scoredText)) }
func (w *worstFirst) Pop() any          { panic("nothing is taken out") }

// scorer gives texts the score that SQLite's bm25 gives them.
type scorer struct {
	c       *concordance
	phrases []phrase
	length  float64 // of a text, on average
	counts  *tallies
}

func (s *scorer) best(texts []int32) []scoredText {
	top := make(worstFirst, 0, min(len(texts), maxCandidates))
	for _, slot := range texts {
		x := scoredText{slot, s.c.docs[slot].row, s.score(slot)}
		switch {
		case len(top) < maxCandidates:
			if top = append(top, x); len(top) == maxCandidates {
				heap.Init(&top)
			}
		case x.compare(top[0]) < 0:
			top[0] = x
			heap.Fix(&top, 0)
		}
	}
	slices.SortFunc(top, scoredText.compare)
	return top
}

func (s *scorer) score(slot int32) float64 {
	d := &s.c.docs[slot]
	s.c.tally(d, s.counts)
	size, score := float64(d.size+d.near), 0.0
	for i := range s.phrases {
		p := &s.phrases[i]
		n := s.counts.by[s.counts.at(p.number)]
		if p.narrow {
			n.near, n.day = 0, 0
		}
		if often := n.often(); often > 0 {
			score += p.idf * ((often * (bm25K + 1)) / (often + bm25K*(1-bm25B+bm25B*size/s.length)))
		}
	}
	return -1 * score
}

// often adds up as SQLite does, one by one: the sums of fractions are the same
// only in the same order.
func (n *inColumns) often() (sum float64) {
	for range n.body {
		sum += bodyColumn
	}
	for range n.near {
		sum += nearColumn
	}
	for range n.day {
		sum += dayColumn
	}
	for range n.subject {
		sum += byline
	}
	return sum
}

// tallies counts terms in a text.
type tallies struct {
	numbers []uint32
	few     [256]bool // the low bytes of numbers: most terms are told apart by it
	by      []inColumns
}

// inColumns is how often a term stands in each column.
type inColumns struct{ body, near, day, subject int }

func (t *tallies) add(number uint32) {
	t.numbers, t.by = append(t.numbers, number), append(t.by, inColumns{})
	t.few[uint8(number)] = true
}

func (t *tallies) at(number uint32) int { return slices.Index(t.numbers, number) }

func newTallies(phrases []phrase) *tallies {
	t := &tallies{}
	for _, p := range phrases {
		if t.at(p.number) < 0 {
			t.add(p.number)
		}
	}
	return t
}

// tally counts anew, in d.
func (c *concordance) tally(d *shelved, t *tallies) {
	clear(t.by)
	for _, n := range d.bodyTerms() {
		if t.few[uint8(n)] {
			if i := t.at(n); i >= 0 {
				t.by[i].body++
			}
		}
	}
	for _, slot := range d.around {
		if slot < 0 {
			continue
		}
		for _, n := range c.docs[slot].bodyTerms() {
			if t.few[uint8(n)] {
				if i := t.at(n); i >= 0 {
					t.by[i].near++
				}
			}
		}
	}
	for _, n := range d.dayTerms() {
		if i := t.at(n); i >= 0 {
			t.by[i].day++
		}
	}
	for _, n := range d.subjectTerms() {
		if i := t.at(n); i >= 0 {
			t.by[i].subject++
		}
	}
}

// candidates are the texts as they are ranked, their terms counted already.
func (c *concordance) candidates(q asked, texts []int32) []candidate {
	t, of := &tallies{}, []int{} // of: the question's term that a number is a form of
	for i := range q.terms {
		for _, form := range q.terms[i].forms {
			if n, there := c.numbers[form]; there && t.at(n) < 0 {
				t.add(n)
				of = append(of, i)
			}
		}
	}
	out := make([]candidate, len(texts))
	all := make([]counts, len(texts))
	room := make([]int, 3*len(q.terms)*len(texts))
	for i, slot := range texts {
		d, n := &c.docs[slot], &all[i]
		for _, field := range []*[]int{&n.body, &n.near, &n.day} {
			*field, room = room[:len(q.terms):len(q.terms)], room[len(q.terms):]
		}
		c.tally(d, t)
		for k, in := range t.by {
			n.body[of[k]] += in.body
			n.near[of[k]] += in.near
			n.day[of[k]] += in.day
		}
		out[i] = candidate{doc: d.doc, subject: d.subject, at: d.at, session: d.session, chars: int(d.chars), words: int(d.words),
			asks: d.marks&markAsks != 0, tells: d.marks&markTells != 0, past: classOf(d.row) == classPast, counted: n}
	}
	return out
}

// these are documents by their numbers, without those that the question does not
// ask for.
func (c *concordance) these(q Query, m matches, docs []int64) []candidate {
	var texts []int32
	for _, doc := range docs {
		slot, there := c.at[doc]
		if !there {
			continue
		}
		row := c.docs[slot].row
		if class := classOf(row); slices.Contains(m.scopes, scopeOf(row)) && (class == classActive || class == classPast && q.Past) {
			texts = append(texts, slot)
		}
	}
	return c.candidates(m.question, texts)
}
