package memory

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// concordance is what the full-text index knows, in memory: which words stand in
// which text. It takes about 400 bytes for a text of twenty words. It is made of the
// index and never of the truth, so that both always say the same.
type concordance struct {
	docs   []shelved
	free   []int32 // in docs
	at     map[int64]int32
	tokens int // of all texts, their neighbours counted with each

	numbers map[string]uint32 // of the terms
	terms   []vocable
	unused  []uint32 // in terms

	names  map[Scope]int64
	scopes map[int64]*scopeWords
	talks  map[int64][]talker // places, in their order
}

// vocable is a term and in how many texts it stands.
type vocable struct {
	text   string
	uses   int32
	tokens int32 // that SQLite takes it apart into
}

// tokensOf counts what SQLite's tokenizer makes of a term: it knows no vowel signs.
func tokensOf(t string) (n int32) {
	inside := false
	for _, r := range t {
		mark := r >= 0x300 && r <= 0x331
		switch part := unicode.In(r, unicode.L, unicode.N, unicode.Co) || inside && mark; {
		case part && !inside:
			n, inside = n+1, true
		case !part:
			inside = false
		}
	}
	return n
}

// shelved is one text: its terms by their numbers, body, day and subject.
type shelved struct {
	row, doc, at, session, place int64
	seq                          int
	chars, words                 int32
	marks                        uint8
	body, day                    int32 // how many of numbers are of it
	size, bodySize, near         int32 // what SQLite counts in all of it, in its body, and in the bodies around it
	numbers                      []uint32
	subject                      string
	around                       [2 * nearby]int32 // in docs; -1 = none
}

func (d *shelved) bodyTerms() []uint32    { return d.numbers[:d.body] }
func (d *shelved) dayTerms() []uint32     { return d.numbers[d.body : d.body+d.day] }
func (d *shelved) subjectTerms() []uint32 { return d.numbers[d.body+d.day:] }

// scopeWords is what a scope holds.
type scopeWords struct {
	docs, words int
	has         map[uint32][]int32 // by term: the texts with it in body, day or subject
}

// talker is a text in its conversation.
type talker struct {
	spot
	slot int32
}

func newConcordance() *concordance {
	return &concordance{at: map[int64]int32{}, numbers: map[string]uint32{}, names: map[Scope]int64{},
		scopes: map[int64]*scopeWords{}, talks: map[int64][]talker{}}
}

// number is that of a term, which stands in one text more.
func (c *concordance) number(t string) uint32 {
	n, there := c.numbers[t]
	if !there {
		t = strings.Clone(t) // and not the text that it is a part of
		if last := len(c.unused) - 1; last >= 0 {
			n, c.unused = c.unused[last], c.unused[:last]
			c.terms[n] = vocable{text: t, tokens: tokensOf(t)}
		} else {
			n = uint32(len(c.terms))
			c.terms = append(c.terms, vocable{text: t, tokens: tokensOf(t)})
		}
		c.numbers[t] = n
	}
	return n
}

// posted is a row of the index.
type posted struct {
	row, doc, place, at, session int64
	seq, chars, words, marks     int
	body, day, subject           string
}

// put adds x, which must not be there. Its neighbours follow with join.
func (c *concordance) put(x posted) {
	d := shelved{row: x.row, doc: x.doc, at: x.at, session: x.session, place: x.place, seq: x.seq,
		chars: int32(x.chars), words: int32(x.words), marks: uint8(x.marks), around: nobody}
	d.numbers = make([]uint32, 0, strings.Count(x.body, " ")+strings.Count(x.day, " ")+strings.Count(x.subject, " ")+3)
	take := func(field string) int32 {
		before := len(d.numbers)
		for t := range strings.FieldsSeq(field) {
			n := c.number(t)
			d.numbers, d.size = append(d.numbers, n), d.size+c.terms[n].tokens
		}
		return int32(len(d.numbers) - before)
	}
	d.body = take(x.body)
	d.bodySize = d.size
	d.day = take(x.day)
	if take(x.subject) == 1 {
		d.subject = c.terms[d.numbers[len(d.numbers)-1]].text
	} else {
		d.subject = strings.Clone(x.subject)
	}
	slot := int32(len(c.docs))
	if last := len(c.free) - 1; last >= 0 {
		slot, c.free = c.free[last], c.free[:last]
		c.docs[slot] = d
	} else {
		c.docs = append(c.docs, d)
	}
	c.at[d.doc] = slot
	c.tokens += int(d.size)
	s := c.scopes[scopeOf(d.row)]
	if s == nil {
		s = &scopeWords{has: map[uint32][]int32{}}
		c.scopes[scopeOf(d.row)] = s
	}
	s.docs, s.words = s.docs+1, s.words+x.words
	for i, n := range d.numbers {
		if !slices.Contains(d.numbers[:i], n) {
			s.has[n] = append(s.has[n], slot)
			c.terms[n].uses++
		}
	}
	if d.place != 0 {
		talk, who := c.talks[d.place], talker{spot{d.seq, d.doc}, slot}
		if k := len(talk); k > 0 && talk[k-1].compare(who.spot) > 0 {
			p, _ := find(talk, who.spot)
			talk = slices.Insert(talk, p, who)
		} else {
			talk = append(talk, who)
		}
		c.talks[d.place] = talk
	}
}

var nobody = [2 * nearby]int32{-1, -1, -1, -1}

func find(talk []talker, where spot) (int, bool) {
	return slices.BinarySearchFunc(talk, where, func(t talker, s spot) int { return t.compare(s) })
}

// drop takes doc out, if it is there, and returns where it stood, so that those
// around it can be joined.
func (c *concordance) drop(doc int64) (place int64, where spot) {
	slot, there := c.at[doc]
	if !there {
		return 0, spot{}
	}
	d := &c.docs[slot]
	s := c.scopes[scopeOf(d.row)]
	s.docs, s.words = s.docs-1, s.words-int(d.words)
	for i, n := range d.numbers {
		if slices.Contains(d.numbers[:i], n) {
			continue
		}
		list := s.has[n]
		if k := slices.Index(list, slot); len(list) == 1 {
			delete(s.has, n)
		} else {
			list[k] = list[len(list)-1]
			s.has[n] = list[:len(list)-1]
		}
		if c.terms[n].uses--; c.terms[n].uses == 0 { // forgotten means gone
			delete(c.numbers, c.terms[n].text)
			c.terms[n].text = ""
			c.unused = append(c.unused, n)
		}
	}
	c.tokens -= int(d.size + d.near)
	place, where = d.place, spot{d.seq, d.doc}
	if place != 0 {
		talk := c.talks[place]
		if p, found := find(talk, where); found {
			talk = slices.Delete(talk, p, p+1)
		}
		if c.talks[place] = talk; len(talk) == 0 {
			delete(c.talks, place)
		}
	}
	clear(d.numbers)
	c.docs[slot] = shelved{doc: -1 << 63, around: nobody}
	c.free = append(c.free, slot)
	delete(c.at, doc)
	return place, where
}

// join makes neighbours of those around where.
func (c *concordance) join(place int64, where spot) {
	talk := c.talks[place]
	p, _ := find(talk, where)
	for i := max(0, p-nearby); i <= min(p+nearby, len(talk)-1); i++ {
		c.surround(talk, i)
	}
}

// joinAll makes neighbours of all.
func (c *concordance) joinAll() {
	for _, talk := range c.talks {
		for i := range talk {
			c.surround(talk, i)
		}
	}
}

func (c *concordance) surround(talk []talker, i int) {
	d := &c.docs[talk[i].slot]
	c.tokens -= int(d.near)
	d.around, d.near = nobody, 0
	k := 0
	for j := max(0, i-nearby); j <= min(i+nearby, len(talk)-1); j++ {
		o := &c.docs[talk[j].slot]
		if gap := o.at - d.at; j == i || max(gap, -gap) > neighbourGap.Milliseconds() {
			continue
		}
		d.around[k], d.near = talk[j].slot, d.near+o.bodySize
		k++
	}
	c.tokens += int(d.near)
}

// numbered is the numbers of the scopes that hold something, ascending.
func (c *concordance) numbered(names []Scope) (numbers []int64, known corpus) {
	words := 0
	for _, name := range names {
		no := c.names[name]
		if s := c.scopes[no]; s != nil && s.docs > 0 && !slices.Contains(numbers, no) {
			numbers, known.docs, words = append(numbers, no), known.docs+s.docs, words+s.words
		}
	}
	if known.docs > 0 {
		known.words = float64(words) / float64(known.docs)
	}
	slices.SortFunc(numbers, cmp.Compare[int64])
	return numbers, known
}
