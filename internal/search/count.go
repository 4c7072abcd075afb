package search

import (
	"hash/maphash"
	"slices"
	"strings"
)

// The fields of a text that have terms.
const (
	inBody    = iota
	inDay     // when it was said
	inSubject // who said it, or whom it is about
	fields
)

// hash is the hash of a term, different in each run of the program. Hashes are compared faster than terms, and the garbage
// collector need not look at them. There are 2^64, so two terms do not have the same.
type hash uint64

var seed = maphash.MakeSeed()

func hashOf(term string) hash { return hash(maphash.String(seed, term)) }

// hashesIn returns the hashes of the terms of a field, as the index stores it.
func hashesIn(field string) []hash {
	all := make([]hash, 0, strings.Count(field, " ")+1)
	for term := range strings.FieldsSeq(field) {
		all = append(all, hashOf(term))
	}
	return all
}

// termCount says how often a term of a query occurs in a text and beside it.
type termCount struct {
	term int // index
	n    [fields]float64
	near float64 // in the bodies of its neighbours
}

// termCounter counts the terms of a query in texts, in each text once.
type termCounter struct {
	terms []term
	forms map[hash]int // → index of the first term that has it
	maybe [4096]bool   // whether a form has this remainder of its hash; most terms of texts are ruled out by it
	known map[*indexedText][]termCount
	space []termCount // for the counts of further texts
}

func newTermCounter(terms []term) *termCounter {
	c := termCounter{terms: terms, forms: map[hash]int{}, known: make(map[*indexedText][]termCount, 256)}
	for i, t := range slices.Backward(terms) {
		for _, form := range t.forms {
			h := hashOf(form)
			c.forms[h], c.maybe[h%hash(len(c.maybe))] = i, true
		}
	}
	return &c
}

// in counts the terms that occur in t. The result must not be changed.
func (c *termCounter) in(t *indexedText) []termCount {
	found, known := c.known[t]
	if known {
		return found
	}
	if len(c.space) < len(c.terms) {
		c.space = make([]termCount, 20*len(c.terms))
	}
	found = c.space[:0:len(c.terms)]
	for field, terms := range t.terms {
		for _, h := range terms {
			if !c.maybe[h%hash(len(c.maybe))] {
				continue
			}
			if i, ok := c.forms[h]; ok {
				countOf(&found, i).n[field]++
			}
		}
	}
	c.known[t], c.space = found, c.space[len(found):]
	return found[:len(found):len(found)]
}

// withNeighbours counts the terms that occur in a candidate or its neighbours.
func (c *termCounter) withNeighbours(of *candidate) []termCount {
	all := slices.Clone(c.in(of.indexedText))
	for _, beside := range of.near {
		for _, f := range c.in(beside) {
			if f.n[inBody] > 0 {
				countOf(&all, f.term).near += f.n[inBody]
			}
		}
	}
	return all
}

// countOf returns the element of all for a term, which it adds if it is missing.
func countOf(all *[]termCount, term int) *termCount {
	i := slices.IndexFunc(*all, func(c termCount) bool { return c.term == term })
	if i < 0 {
		i, *all = len(*all), append(*all, termCount{term: term})
	}
	return &(*all)[i]
}

// indexesOf returns the indexes of some of the terms.
func (c *termCounter) indexesOf(some []term) map[int]bool {
	out := map[int]bool{}
	for _, t := range some {
		out[c.forms[hashOf(t.forms[0])]] = true
	}
	return out
}

// score is the BM25 score of the terms chosen in t, without its neighbours.
func (c *termCounter) score(t *indexedText, in corpus, chosen map[int]bool) (score float64) {
	for _, f := range c.in(t) {
		if chosen[f.term] {
			n := f.n[inBody] + dayWeight*f.n[inDay] + subjectWeight*f.n[inSubject]
			score += c.terms[f.term].idf * saturate(n, in.lengthFactor(t.words))
		}
	}
	return score
}
