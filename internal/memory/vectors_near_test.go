package memory

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// randomVector is one of many around few centres, like those of texts.
func randomVector(r *rand.Rand, dim int) []float32 {
	centre := rand.New(rand.NewPCG(r.Uint64N(64), 7))
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(centre.NormFloat64() + r.NormFloat64())
	}
	return v
}

func coded(t failer, v []float32) []float32 {
	code, _ := decodeVector(must(encodeVector(v))(t), len(v))
	return code
}

func unit64(v []float64) []float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x / math.Sqrt(sum)
	}
	return out
}

func float64s(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func product(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// taken is an entry with a vector as it is kept.
func taken(t failer, e vectorEntry, v []float32) *vectorEntry {
	e.vec = coded(t, v)
	return &e
}

// TestCollection: after any order of adding and removing, every cosine and window is
// what its definition says, and the nearest are the nearest.
// Holds P3.
func TestCollection(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		const dim = 70
		c := must(newCollection())(t)
		there := map[int64]*vectorEntry{}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.Int64Range(1, 20).Draw(t, "n")
			if e, known := there[n]; known {
				if err := c.remove(ctx, e); err != nil || slices.Max(e.vec) != 0 || slices.Min(e.vec) != 0 {
					t.Fatalf("of what was removed is left %v, %v", e.vec, err)
				}
				delete(there, n)
				continue
			}
			there[n] = taken(t, vectorEntry{n: n, talk: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "talk"), seq: rapid.Int64Range(0, 5).Draw(t, "seq"),
				observed: rapid.SampledFrom([]int64{0, windowGap, windowGap + 1}).Draw(t, "at"), past: rapid.Bool().Draw(t, "past")}, randomVector(r, dim))
			noError(t, c.add(ctx, there[n]))
		}
		if c.docs.Count() != len(there) || len(c.order) != len(there) || !slices.IsSortedFunc(c.order, (*vectorEntry).compare) {
			t.Fatalf("%d documents and %d entries of %d", c.docs.Count(), len(c.order), len(there))
		}
		q := randomVector(r, dim)
		want := likenesses(there, q)
		find := func(w wanted, k int) []Likeness {
			found := must(c.nearest(ctx, unit(q), w, k, there))(t)
			return found
		}
		found := find(wanted{past: true}, 100)
		if len(found) != len(there) {
			t.Fatalf("%d of %d are found", len(found), len(there))
		}
		for i, got := range found {
			w := want[got.N]
			if math.Abs(got.Cosine-w.Cosine) > 1e-4 || math.Abs(got.Window-w.Window) > 1e-4 {
				t.Errorf("entry %d: %+v, want %+v", got.N, got, w)
			}
			if i > 0 && found[i-1].Cosine+found[i-1].Window < got.Cosine+got.Window {
				t.Errorf("not in order: %v", found)
			}
		}
		for _, got := range find(wanted{}, 100) {
			if there[got.N].past {
				t.Errorf("entry %d does not hold any more", got.N)
			}
		}
	})
}

// likenesses are those of entries by their definition.
func likenesses(there map[int64]*vectorEntry, q []float32) map[int64]Likeness {
	qu := unit64(float64s(q))
	all := slices.SortedFunc(maps.Values(there), (*vectorEntry).compare)
	want := map[int64]Likeness{}
	for i, one := range all {
		sum := unit64(float64s(one.vec))
		for _, step := range []int{-1, 1} {
			j := i + step
			if one.talk == "" || j < 0 || j >= len(all) || all[j].talk != one.talk || max(all[j].observed-one.observed, one.observed-all[j].observed) > windowGap {
				continue
			}
			for k, x := range unit64(float64s(all[j].vec)) {
				sum[k] += x / 2
			}
		}
		want[one.n] = Likeness{one.n, product(qu, unit64(float64s(one.vec))), product(qu, unit64(sum))}
	}
	return want
}

// Holds L22.
func TestEncodeVectorRefuses(t *testing.T) {
	for _, v := range [][]float32{{0, 0}, {float32(math.NaN()), 1}, {1, float32(math.Inf(-1))}} {
		if blob, err := encodeVector(v); err == nil {
			t.Errorf("%v is written as %v", v, blob)
		}
	}
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 { // a cosine moves by about 0.0003
		a, b := randomVector(r, 512), randomVector(r, 512)
		exact := product(unit64(float64s(a)), unit64(float64s(b)))
		if kept := product(unit64(float64s(coded(t, a))), unit64(float64s(b))); math.Abs(exact-kept) > 2e-3 {
			t.Errorf("cosine %v became %v", exact, kept)
		}
	}
}
