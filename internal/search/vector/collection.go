package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/philippgille/chromem-go"

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
	observedAt   int64     // Unix milliseconds
	past         bool      // superseded or archived
	vec          []float32 // of length 1
}

// compare orders entries by their position in conversations.
func (e *vectorEntry) compare(o *vectorEntry) int {
	return cmp.Or(cmp.Compare(e.conversation, o.conversation), cmp.Compare(e.seq, o.seq), cmp.Compare(e.n, o.n))
}

// conversations are the entries of one scope, sorted by compare.
type conversations []*vectorEntry

// neighbourVector returns the vector step positions from p, or nil. The vector must be in the same
// conversation and within windowGap.
func (c conversations) neighbourVector(p, step int) []float32 {
	if p+step < 0 || p+step >= len(c) {
		return nil
	}
	e, o := c[p], c[p+step]
	gap := o.observedAt - e.observedAt
	if e.conversation == "" || e.conversation != o.conversation || e.scope != o.scope || max(gap, -gap) > windowGap {
		return nil
	}
	return o.vec
}

// similarity compares the entry at p with the unit vector q. The window vector is unit(v + ½ before
// + ½ after): the text with its neighbours.
func (c conversations) similarity(q []float32, p int) Similarity {
	e := c[p]
	l := Similarity{Doc: e.n, Cosine: dot(q, e.vec)}
	l.Window = l.Cosine
	before, after := c.neighbourVector(p, -1), c.neighbourVector(p, 1)
	if before == nil && after == nil {
		return l
	}
	sum := slices.Clone(e.vec)
	for _, o := range [][]float32{before, after} {
		for i, x := range o {
			sum[i] += x / 2
		}
	}
	l.Window = 0
	if square := dot(sum, sum); square > 0 {
		l.Window = dot(q, sum) / math.Sqrt(square)
	}
	return l
}

// position returns the index of e, or where it would be inserted.
func (c conversations) position(e *vectorEntry) (int, bool) {
	return slices.BinarySearchFunc(c, e, (*vectorEntry).compare)
}

// collection holds the vectors of one scope in memory.
type collection struct {
	docs  *chromem.Collection // one document per entry; its id is the number
	order conversations
}

func newCollection() (*collection, error) {
	none := func(context.Context, string) ([]float32, error) {
		return nil, errors.New("chromem: only documents with a vector can be added")
	}
	docs, err := chromem.NewDB().CreateCollection("entries", nil, none)
	return &collection{docs: docs}, err
}

func (e *vectorEntry) docID() string { return strconv.FormatInt(e.n, 10) }

// add adds e, whose number must be new.
func (c *collection) add(ctx context.Context, e *vectorEntry) error {
	if err := c.docs.AddDocument(ctx, chromem.Document{ID: e.docID(), Embedding: e.vec}); err != nil {
		return err
	}
	p, _ := c.order.position(e)
	c.order = slices.Insert(c.order, p, e)
	return nil
}

// remove removes e and overwrites its vector, so that a forgotten text leaves no trace.
func (c *collection) remove(ctx context.Context, e *vectorEntry) error {
	err := c.docs.Delete(ctx, nil, nil, e.docID()) // a map that is not nil would delete all
	if p, there := c.order.position(e); there {
		c.order = slices.Delete(c.order, p, p+1)
	}
	clear(e.vec)
	return err
}

// nearest returns, unordered, the k entries matching w nearest to the unit vector q. It considers
// the 4k nearest entries and their neighbours, because some may be past.
func (c *collection) nearest(ctx context.Context, q []float32, w Filter, k int, byNumber map[int64]*vectorEntry) ([]Similarity, error) {
	places := make([]bool, len(c.order))
	// chromem returns an error for more results than documents, and for zero.
	found, err := c.docs.QueryEmbedding(ctx, q, min(4*k, c.docs.Count()), nil, nil)
	if err != nil && len(places) > 0 {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	for _, f := range found {
		n, _ := strconv.ParseInt(f.ID, 10, 64)
		p, _ := c.order.position(byNumber[n])
		for i := max(0, p-1); i <= min(p+1, len(places)-1); i++ {
			places[i] = true
		}
	}
	var out []Similarity
	for p, e := range c.order {
		if places[p] && w.matches(e) {
			out = append(out, c.order.similarity(q, p))
		}
	}
	return topK(out, k), nil
}

// topK returns the k most similar of found, best first.
func topK(found []Similarity, k int) []Similarity {
	slices.SortFunc(found, func(a, b Similarity) int {
		return cmp.Or(cmp.Compare(b.Cosine+b.Window, a.Cosine+a.Window), cmp.Compare(b.Doc, a.Doc)) // newest first
	})
	return found[:min(len(found), k)]
}
