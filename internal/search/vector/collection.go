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

// windowGap is how long after each other two texts may have been said and still
// be read together, in milliseconds.
const windowGap = 6 * 60 * 60 * 1000

// vectorEntry is an entry as it is compared with questions.
type vectorEntry struct {
	n            int64 // memory.n
	scope        trust.Readers
	conversation string // memory.conversation
	seq          int64
	observedAt   int64     // Unix milliseconds
	past         bool      // no longer holds
	vec          []float32 // of length 1
}

// compare orders entries by their places in conversations.
func (e *vectorEntry) compare(o *vectorEntry) int {
	return cmp.Or(cmp.Compare(e.conversation, o.conversation), cmp.Compare(e.seq, o.seq), cmp.Compare(e.n, o.n))
}

// conversations are entries of one scope in the order of compare.
type conversations []*vectorEntry

// beside is the vector of the entry that stands step places from place p in the same
// conversation and was said at about the same time; nil = there is none.
func (c conversations) neighbourVector(p, step int) []float32 {
	if p+step < 0 || p+step >= len(c) {
		return nil
	}
	e, o := c[p], c[p+step]
	if gap := o.observedAt - e.observedAt; e.conversation == "" || e.conversation != o.conversation || e.scope != o.scope || max(gap, -gap) > windowGap {
		return nil
	}
	return o.vec
}

// likeness compares the entry at place p with the unit vector q. The window of an
// entry is unit(v + ½ before + ½ after): what it says with its neighbours.
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

// place is where e stands, or would stand.
func (c conversations) position(e *vectorEntry) (int, bool) {
	return slices.BinarySearchFunc(c, e, (*vectorEntry).compare)
}

// collection holds the entries of one scope that have a vector, in memory.
type collection struct {
	docs  *chromem.Collection // one for each entry; its id is the number
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

// add adds e, whose number must not be there yet.
func (c *collection) add(ctx context.Context, e *vectorEntry) error {
	if err := c.docs.AddDocument(ctx, chromem.Document{ID: e.docID(), Embedding: e.vec}); err != nil {
		return err
	}
	p, _ := c.order.position(e)
	c.order = slices.Insert(c.order, p, e)
	return nil
}

// remove takes e out and overwrites its vector: forgotten means gone.
func (c *collection) remove(ctx context.Context, e *vectorEntry) error {
	err := c.docs.Delete(ctx, nil, nil, e.docID()) // a map that is not nil would delete all
	if p, there := c.order.position(e); there {
		c.order = slices.Delete(c.order, p, p+1)
	}
	clear(e.vec)
	return err
}

// nearest returns the k entries that w wants and that are nearest to the unit vector q,
// unordered. They are looked for among the 4k nearest by themselves and their neighbours, of
// which some may no longer hold.
func (c *collection) nearest(ctx context.Context, q []float32, w Filter, k int, byNumber map[int64]*vectorEntry) ([]Similarity, error) {
	places := make([]bool, len(c.order))
	// chromem refuses to look for more than there are, and for none.
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

// best keeps the k largest of found, the largest first.
func topK(found []Similarity, k int) []Similarity {
	slices.SortFunc(found, func(a, b Similarity) int {
		return cmp.Or(cmp.Compare(b.Cosine+b.Window, a.Cosine+a.Window), cmp.Compare(b.Doc, a.Doc)) // the newer
	})
	return found[:min(len(found), k)]
}
