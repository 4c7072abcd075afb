package memory

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// exactly is how many vectors of a scope are compared number by number. Of more
// than that, those whose signs agree best with the question's are.
const exactly = 4096

// windowGap is how long after each other two texts may have been said and still
// be read together, in milliseconds.
const windowGap = 6 * 60 * 60 * 1000

// shelf holds the vectors of one scope. A vector is a row of codes, in the order
// of rows.
//
// The window of an entry is what it means together with its neighbours in the
// conversation: unit(v + ½ before + ½ after). It needs no numbers of its own, as its
// cosine follows from theirs.
type shelf struct {
	dim   int
	rows  []vectorRow
	codes []int8
	signs []uint64 // of the vectors, a bit per number
	wide  []uint64 // of the windows
	at    map[int64]int32
	talks map[string][]saying // conversations, in their order
	sum   []float32           // widen's
}

// vectorRow is what is known of one entry besides its vector.
type vectorRow struct {
	n             int64 // memory.n
	observed      int64 // Unix milliseconds
	talk          string
	seq           int64
	past          bool    // no longer holds
	scale         float32 // makes the codes a vector of length 1
	length        float32 // of v + ½ before + ½ after
	before, after int32   // rows of the neighbours; -1 = none
}

// saying is the place of an entry in its conversation.
type saying struct{ seq, n int64 }

func (a saying) compare(b saying) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.n, b.n))
}

func newShelf(dim int) *shelf {
	return &shelf{dim: dim, at: map[int64]int32{}, talks: map[string][]saying{}, sum: make([]float32, dim)}
}

func (s *shelf) words() int            { return (s.dim + 63) / 64 }
func (s *shelf) code(i int32) []int8   { return s.codes[int(i)*s.dim : (int(i)+1)*s.dim] }
func (s *shelf) sign(i int32) []uint64 { return s.signs[int(i)*s.words() : (int(i)+1)*s.words()] }

// put adds r, whose entry must not be there yet, with its vector.
func (s *shelf) put(r vectorRow, code []int8) {
	i := int32(len(s.rows))
	r.scale, r.before, r.after, r.length = scaleOf(code), -1, -1, 1
	s.rows = append(s.rows, r)
	s.codes = append(s.codes, code...)
	s.signs = appendSigns(s.signs, code)
	s.wide = append(s.wide, s.sign(i)...)
	s.at[r.n] = i
	if r.talk == "" {
		return
	}
	talk, where := s.talks[r.talk], saying{r.seq, r.n}
	if k := len(talk); k == 0 || talk[k-1].compare(where) < 0 { // as mostly
		s.talks[r.talk] = append(talk, where)
	} else {
		p, _ := slices.BinarySearchFunc(talk, where, saying.compare)
		s.talks[r.talk] = slices.Insert(talk, p, where)
	}
	s.join(r.talk, where)
}

// drop takes the entry n out, if it is there.
func (s *shelf) drop(n int64) {
	i, there := s.at[n]
	if !there {
		return
	}
	r := s.rows[i]
	last := int32(len(s.rows) - 1)
	if i != last {
		s.rows[i] = s.rows[last]
		copy(s.code(i), s.code(last))
		copy(s.sign(i), s.sign(last))
		copy(s.wide[int(i)*s.words():], s.wide[int(last)*s.words():])
		s.at[s.rows[i].n] = i
		if b := s.rows[i].before; b >= 0 {
			s.rows[b].after = i
		}
		if a := s.rows[i].after; a >= 0 {
			s.rows[a].before = i
		}
	}
	s.rows[last] = vectorRow{}
	clear(s.code(last)) // forgotten means gone
	s.rows, s.codes = s.rows[:last], s.codes[:int(last)*s.dim]
	s.signs, s.wide = s.signs[:int(last)*s.words()], s.wide[:int(last)*s.words()]
	delete(s.at, n)
	if r.talk == "" {
		return
	}
	where := saying{r.seq, r.n}
	talk := s.talks[r.talk]
	if p, found := slices.BinarySearchFunc(talk, where, saying.compare); found {
		talk = slices.Delete(talk, p, p+1)
	}
	if len(talk) == 0 {
		delete(s.talks, r.talk)
		return
	}
	s.talks[r.talk] = talk
	s.join(r.talk, where)
}

// join makes neighbours of the entries around where.
func (s *shelf) join(name string, where saying) {
	talk := s.talks[name]
	p, _ := slices.BinarySearchFunc(talk, where, saying.compare)
	first, last := max(0, p-1), min(p+1, len(talk)-1)
	for i := first; i <= last; i++ {
		r := &s.rows[s.at[talk[i].n]]
		r.before, r.after = -1, -1
		if i > 0 {
			r.before = s.neighbour(r, talk[i-1])
		}
		if i < len(talk)-1 {
			r.after = s.neighbour(r, talk[i+1])
		}
	}
	for i := first; i <= last; i++ {
		s.widen(s.at[talk[i].n])
	}
}

func (s *shelf) neighbour(r *vectorRow, of saying) int32 {
	i := s.at[of.n]
	if gap := s.rows[i].observed - r.observed; max(gap, -gap) > windowGap {
		return -1
	}
	return i
}

// widen computes the window of row i.
func (s *shelf) widen(i int32) {
	r := &s.rows[i]
	sum := s.sum
	clear(sum)
	add := func(j int32, share float32) {
		if j < 0 {
			return
		}
		share *= s.rows[j].scale
		for k, c := range s.code(j) {
			sum[k] += share * float32(c)
		}
	}
	add(i, 1)
	add(r.before, .5)
	add(r.after, .5)
	var square float64
	wide := s.wide[int(i)*s.words() : (int(i)+1)*s.words()]
	clear(wide)
	for k, x := range sum {
		square += float64(x) * float64(x)
		wide[k/64] |= uint64(math.Float32bits(x)>>31) << (k % 64)
	}
	r.length = float32(math.Sqrt(square))
}

// probe is a question's vector, prepared.
type probe struct {
	code  []int32
	signs []uint64
	scale float64 // makes code a vector of length 1
}

// finer is how much finer a question's numbers are than those that are kept.
const finer = 1 << 15

// newProbe prepares v. It is nil for a vector that points nowhere.
func newProbe(v []float32) *probe {
	var most float64
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
	}
	if !(most > 0) || math.IsInf(most, 0) {
		return nil
	}
	p := &probe{code: make([]int32, len(v)), signs: make([]uint64, (len(v)+63)/64)}
	var square float64
	for i, x := range v {
		c := math.Round(float64(x) / most * finer)
		p.code[i] = int32(c)
		square += c * c
		if c < 0 {
			p.signs[i/64] |= 1 << (i % 64)
		}
	}
	p.scale = 1 / math.Sqrt(square)
	return p
}

// look compares the vectors of one shelf with a question, each at most once.
type look struct {
	*shelf
	*probe
	cosines []float32 // by row; unknown = not compared yet
}

const unknown = 2 // no cosine is

func (s *shelf) look(p *probe) *look {
	l := &look{s, p, make([]float32, len(s.rows))}
	for i := range l.cosines {
		l.cosines[i] = unknown
	}
	return l
}

// cosine compares p with row i of s.
func (p *probe) cosine(s *shelf, i int32) float64 {
	return float64(dot(p.code, s.code(i))) * float64(s.rows[i].scale) * p.scale
}

func (l *look) cosine(i int32) float64 {
	if l.cosines[i] == unknown {
		l.cosines[i] = float32(l.probe.cosine(l.shelf, i))
	}
	return float64(l.cosines[i])
}

// compare is how near row i is, alone and as a window.
func (l *look) compare(i int32) Likeness {
	r := &l.rows[i]
	found := Likeness{N: r.n, Cosine: l.cosine(i)}
	if r.before < 0 && r.after < 0 {
		found.Window = found.Cosine
		return found
	}
	sum := found.Cosine
	if r.before >= 0 {
		sum += l.cosine(r.before) / 2
	}
	if r.after >= 0 {
		sum += l.cosine(r.after) / 2
	}
	if r.length > 0 {
		found.Window = sum / float64(r.length)
	}
	return found
}

// dot is exact: the sum of 16,384 products of 15 and 7 bits fits.
func dot(a []int32, b []int8) int64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 int64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += int64(x[0] * int32(y[0]))
		s1 += int64(x[1] * int32(y[1]))
		s2 += int64(x[2] * int32(y[2]))
		s3 += int64(x[3] * int32(y[3]))
	}
	for ; i < len(a); i++ {
		s0 += int64(a[i] * int32(b[i]))
	}
	return s0 + s1 + s2 + s3
}

// nearest returns the k rows of which likeness is largest, unordered, among those
// that w wants.
func (s *shelf) nearest(p *probe, w wanted, k int) []Likeness {
	l := s.look(p)
	var found []Likeness
	for _, i := range s.promising(p, w, max(exactly, 4*k)) {
		found = append(found, l.compare(i))
	}
	return best(found, k)
}

// promising lists about n rows that w wants and whose signs, alone or as a
// window, agree best with the question's; all of them if there are not more.
func (s *shelf) promising(p *probe, w wanted, n int) []int32 {
	all := make([]int32, 0, len(s.rows))
	for i := range s.rows {
		if w.takes(&s.rows[i]) {
			all = append(all, int32(i))
		}
	}
	if len(all) <= n {
		return all
	}
	out := s.agreeing(p, s.signs, all, n/2)
	taken := make(map[int32]bool, len(out))
	for _, i := range out {
		taken[i] = true
	}
	for _, i := range s.agreeing(p, s.wide, all, n/2) {
		if !taken[i] {
			out = append(out, i)
		}
	}
	return out
}

// agreeing lists the n of all whose signs differ least from the question's,
// and those that differ no more than the last of these, but not many.
func (s *shelf) agreeing(p *probe, signs []uint64, all []int32, n int) []int32 {
	words := s.words()
	differing := make([]uint16, len(all))
	count := make([]int, s.dim+1)
	for j, i := range all {
		d := 0
		for k, x := range signs[int(i)*words : (int(i)+1)*words] {
			d += bits.OnesCount64(x ^ p.signs[k])
		}
		differing[j] = uint16(d)
		count[d]++
	}
	limit, sum := 0, count[0]
	for sum < n {
		limit++
		sum += count[limit]
	}
	out := make([]int32, 0, n+n/2)
	for j, i := range all {
		if int(differing[j]) <= limit && len(out) < cap(out) {
			out = append(out, i)
		}
	}
	return out
}

// best keeps the k largest of found, the largest first.
func best(found []Likeness, k int) []Likeness {
	slices.SortFunc(found, func(a, b Likeness) int {
		return cmp.Or(cmp.Compare(b.Cosine+b.Window, a.Cosine+a.Window), cmp.Compare(b.N, a.N)) // the newer
	})
	return found[:min(len(found), k)]
}
