package vector

import (
	"cmp"
	"math"
	"slices"

	"reverie/internal/trust"
)

// windowGap is the maximum time between two texts that form a window, in milliseconds.
const windowGap = 6 * 60 * 60 * 1000

// vectorEntry is a document in memory with its unit vector.
type vectorEntry struct {
	n            int64 // memory.n
	scope        trust.Readers
	conversation string // memory.conversation
	seq          int64
	observedAt   int64 // Unix milliseconds
	past         bool  // superseded or archived
	vec          code
	window       [3]float64 // weights of the cosines of the entry before, this one and the next; see weigh
}

// compare orders entries by their position in conversations.
func (e *vectorEntry) compare(o *vectorEntry) int {
	return cmp.Or(cmp.Compare(e.conversation, o.conversation), cmp.Compare(e.seq, o.seq), cmp.Compare(e.n, o.n))
}

// conversations are the entries of one scope, sorted by compare.
type conversations []*vectorEntry

// neighbour returns the vector step positions from p, or one without numbers. It must be in the same
// conversation and within windowGap.
func (c conversations) neighbour(p, step int) code {
	if p+step < 0 || p+step >= len(c) {
		return code{}
	}
	e, o := c[p], c[p+step]
	gap := o.observedAt - e.observedAt
	if e.conversation == "" || e.conversation != o.conversation || e.scope != o.scope || max(gap, -gap) > windowGap {
		return code{}
	}
	return o.vec
}

// weigh sets the window of the entries from position p-1 to p+1. The window vector is
// unit(v + ½ before + ½ after): the text with its neighbours. Its cosine is a weighted sum of theirs.
func (c conversations) weigh(p int) {
	for p := max(0, p-1); p < min(p+2, len(c)); p++ {
		e := c[p]
		e.window = [3]float64{1: 1}
		square, before, after := 1.0, c.neighbour(p, -1), c.neighbour(p, 1)
		if before.numbers != nil {
			e.window[0], square = .5, square+.25+before.query().cosine(e.vec)
		}
		if after.numbers != nil {
			e.window[2], square = .5, square+.25+after.query().cosine(e.vec)
		}
		if before.numbers != nil && after.numbers != nil {
			square += before.query().cosine(after) / 2
		}
		for i := range e.window {
			e.window[i] /= math.Sqrt(max(square, 1e-3)) // opposite texts leave nearly nothing, in no direction
		}
	}
}

// similarity compares the entry at p, given the cosine of each position.
func (c conversations) similarity(p int, cosine func(int) float64) Similarity {
	s := Similarity{Doc: c[p].n, Cosine: cosine(p)}
	for i, weight := range c[p].window {
		if weight != 0 {
			s.Window += weight * cosine(p+i-1)
		}
	}
	return s
}

// cosine returns the function for similarity that compares vectors with q.
func (c conversations) cosine(q query) func(int) float64 {
	return func(p int) float64 { return q.cosine(c[p].vec) }
}

// position returns the index of e, or where it would be inserted.
func (c conversations) position(e *vectorEntry) (int, bool) {
	return slices.BinarySearchFunc(c, e, (*vectorEntry).compare)
}

// collection holds the vectors of one scope in memory.
type collection struct {
	order conversations

	block []byte   // the newest vectors, one after the other
	free  [][]byte // places of removed vectors
}

// place returns a copy of v that lies behind the one before it. Comparing vectors that are scattered
// over the memory takes three times as long.
func (c *collection) place(v []byte) []byte {
	if n := len(c.free); n > 0 {
		p := c.free[n-1]
		c.free = c.free[:n-1]
		copy(p, v)
		return p
	}
	if len(c.block)+len(v) > cap(c.block) {
		c.block = make([]byte, 0, len(v)*min(max(4, len(c.order)), 1024))
	}
	c.block = append(c.block, v...)
	return slices.Clip(c.block[len(c.block)-len(v):])
}

// add adds e, whose number must be new.
func (c *collection) add(e *vectorEntry) {
	e.vec.numbers = c.place(e.vec.numbers)
	p, _ := c.order.position(e)
	c.order = slices.Insert(c.order, p, e)
	c.order.weigh(p)
}

// remove removes e and overwrites its vector, so that a forgotten text leaves no trace.
func (c *collection) remove(e *vectorEntry) {
	if p, there := c.order.position(e); there {
		c.order = slices.Delete(c.order, p, p+1)
		c.order.weigh(p)
	}
	clear(e.vec.numbers)
	c.free = append(c.free, e.vec.numbers)
}

// nearest returns the k entries matching w that are nearest to q. It compares all.
func (c *collection) nearest(q query, w Filter, k int) (out []Similarity) {
	cosines := make([]float64, len(c.order))
	for p, e := range c.order {
		cosines[p] = q.cosine(e.vec)
	}
	least := -2.0 // nearness of the last of the k best so far
	for p, e := range c.order {
		s := c.order.similarity(p, func(i int) float64 { return cosines[i] })
		if !w.matches(e) || s.nearness() < least {
			continue
		}
		if out = append(out, s); len(out) >= 4*k && k > 0 {
			out = topK(out, k)
			least = out[k-1].nearness()
		}
	}
	return topK(out, k)
}

func (s Similarity) nearness() float64 { return s.Cosine + s.Window }

// topK returns the k most similar of found, best first.
func topK(found []Similarity, k int) []Similarity {
	slices.SortFunc(found, func(a, b Similarity) int {
		return cmp.Or(cmp.Compare(b.nearness(), a.nearness()), cmp.Compare(b.Doc, a.Doc)) // newest first
	})
	return found[:min(len(found), k)]
}
