package memory

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func fileHolds(t testing.TB, file string, part []byte) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Contains(data, part)
}

// randomVector is one of many around few centres, like those of texts.
func randomVector(r *rand.Rand, dim int) []float32 {
	centre := rand.New(rand.NewPCG(r.Uint64N(64), 7))
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(centre.NormFloat64() + r.NormFloat64())
	}
	return v
}

func coded(t interface{ Fatal(...any) }, v []float32) []int8 {
	blob, err := encodeVector(v)
	if err != nil {
		t.Fatal(err)
	}
	code, err := decodeVector(blob, len(v))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func unit(v []float64) []float64 {
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

func float64s[T int8 | float32](v []T) []float64 {
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

// TestShelf: after any order of adding and dropping, every cosine and window is
// what its definition says, and the nearest are the nearest.
func TestShelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const dim = 70
		s := newShelf(dim)
		type said struct {
			vectorRow
			code []int8
		}
		there := map[int64]said{}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.Int64Range(1, 20).Draw(t, "n")
			if _, known := there[n]; known {
				s.drop(n)
				delete(there, n)
				continue
			}
			s.drop(n) // of one that is not there changes nothing
			one := said{vectorRow{n: n, talk: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "talk"), seq: rapid.Int64Range(0, 5).Draw(t, "seq"),
				observed: rapid.SampledFrom([]int64{0, windowGap, windowGap + 1}).Draw(t, "at"), past: rapid.Bool().Draw(t, "past")}, coded(t, randomVector(r, dim))}
			s.put(one.vectorRow, one.code)
			there[n] = one
		}
		fresh := newShelf(dim)
		for i := range s.rows {
			fresh.put(there[s.rows[i].n].vectorRow, there[s.rows[i].n].code)
		}
		if !slices.Equal(fresh.signs, s.signs) || !slices.Equal(fresh.wide, s.wide) {
			t.Error("the signs are not those of the vectors and windows")
		}
		q := randomVector(r, dim)
		qu := unit(float64s(q))
		var all []said
		for _, one := range there {
			all = append(all, one)
		}
		slices.SortFunc(all, func(a, b said) int { return saying{a.seq, a.n}.compare(saying{b.seq, b.n}) })
		want := map[int64]Likeness{}
		for i, one := range all {
			sum := unit(float64s(one.code))
			for _, step := range []int{-1, 1} {
				j := i + step
				for ; j >= 0 && j < len(all) && all[j].talk != one.talk; j += step {
				}
				if one.talk == "" || j < 0 || j >= len(all) || max(all[j].observed-one.observed, one.observed-all[j].observed) > windowGap {
					continue
				}
				for k, x := range unit(float64s(all[j].code)) {
					sum[k] += x / 2
				}
			}
			want[one.n] = Likeness{one.n, product(qu, unit(float64s(one.code))), product(qu, unit(sum))}
		}
		p := newProbe(q)
		found := s.nearest(p, wanted{past: true}, 100)
		if len(found) != len(there) || len(s.rows) != len(there) || len(s.codes) != dim*len(there) || len(s.wide) != len(s.signs) {
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
		for _, got := range s.nearest(p, wanted{}, 100) {
			if there[got.N].past {
				t.Errorf("entry %d does not hold any more", got.N)
			}
		}
		if first := s.nearest(p, wanted{past: true}, 1); len(found) > 0 && first[0] != found[0] {
			t.Errorf("the nearest is %v, not %v", found[0], first[0])
		}
	})
}

// TestShelfOfMany: where there are too many to compare all number by number,
// nearly all of the nearest are found all the same.
func TestShelfOfMany(t *testing.T) {
	const many, dim, k = 30_000, 128, 100
	s := filledShelf(many, dim)
	r := rand.New(rand.NewPCG(99, 1))
	found := 0
	const questions = 20
	for range questions {
		p := newProbe(randomVector(r, dim))
		l := s.look(p)
		var all []Likeness
		for i := range s.rows {
			all = append(all, l.compare(int32(i)))
		}
		all = best(all, k)
		got := s.nearest(p, wanted{}, k)
		if len(got) != k || got[0] != all[0] {
			t.Errorf("%d found, the nearest is %v, not %v", len(got), got[0], all[0])
		}
		for _, g := range got {
			if slices.Contains(all, g) {
				found++
			}
		}
	}
	if share := float64(found) / (questions * k); share < .95 {
		t.Errorf("only %.3f of the nearest %d are found", share, k)
	} else {
		t.Logf("%.3f of the nearest %d are found", share, k)
	}
	none := wanted{after: firstDay.AddDate(50, 0, 0)}
	if got := s.nearest(newProbe(randomVector(r, dim)), none, k); len(got) > 0 {
		t.Errorf("%d found of a time without any", len(got))
	}
}

// TestFoundByItsWindow: among many, what is near only together with its
// neighbours is found too.
func TestFoundByItsWindow(t *testing.T) {
	const dim = 128
	s := filledShelf(20_000, dim)
	r := rand.New(rand.NewPCG(3, 3))
	noise := func() []float32 {
		v := make([]float32, dim)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	q := noise()
	for i := range 40 { // every second one is off the point
		v := noise()
		if i%2 == 0 {
			v = q
		}
		s.put(vectorRow{n: int64(100_000 + i), talk: "new", seq: int64(i)}, coded(t, v))
	}
	found := 0
	for _, l := range s.nearest(newProbe(q), wanted{}, 60) {
		if l.N >= 100_000 {
			found++
		}
	}
	if found < 39 { // the last has one neighbour only
		t.Errorf("%d of 40 are found", found)
	}
}

func filledShelf(n, dim int) *shelf {
	s := newShelf(dim)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		blob, err := encodeVector(randomVector(r, dim))
		if err != nil {
			panic(err)
		}
		code := make([]int8, dim)
		for k, b := range blob {
			code[k] = int8(b)
		}
		s.put(vectorRow{n: int64(i + 1), talk: fmt.Sprint("talk ", i/50), seq: int64(i % 50)}, code)
	}
	return s
}

// FuzzDecodeVector: whatever stands in the database, it is refused or it is a
// vector that can be compared and is written again as it was.
func FuzzDecodeVector(f *testing.F) {
	f.Add([]byte{}, 3)
	f.Add([]byte{1, 2, 3}, 3)
	f.Add([]byte{0, 0, 0}, 3)
	f.Add([]byte{0x80, 0x7f}, 2)
	f.Add([]byte{1}, -1)
	f.Fuzz(func(t *testing.T, blob []byte, dim int) {
		code, err := decodeVector(blob, dim)
		if err != nil || code == nil {
			if len(blob) == dim && dim > 0 && slices.Max(blob) > 0 {
				t.Errorf("a good vector is refused: %v", err)
			}
			return
		}
		s := newShelf(dim)
		s.put(vectorRow{n: 1, talk: "t"}, code)
		s.put(vectorRow{n: 2, talk: "t", seq: 1}, code)
		v := make([]float32, dim)
		for i, c := range code {
			v[i] = float32(c)
		}
		for _, l := range s.nearest(newProbe(v), wanted{}, 5) {
			if math.Abs(l.Cosine-1) > 1e-4 || math.Abs(l.Window-1) > 1e-4 {
				t.Errorf("%v is not like itself: %+v", code, l)
			}
		}
		s.drop(1)
		if again, err := encodeVector(v); err != nil || slices.ContainsFunc(v, func(x float32) bool { return x == 127 }) && !slices.Contains(code, -128) && !bytes.Equal(again, blob) {
			t.Errorf("%v is written as %v, %v", blob, again, err)
		}
	})
}

func TestEncodeVectorRefuses(t *testing.T) {
	for _, v := range [][]float32{{0, 0}, {float32(math.NaN()), 1}, {1, float32(math.Inf(-1))}} {
		if blob, err := encodeVector(v); err == nil {
			t.Errorf("%v is written as %v", v, blob)
		}
	}
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 { // a cosine moves by about 0.0003
		a, b := randomVector(r, 512), randomVector(r, 512)
		exact := product(unit(float64s(a)), unit(float64s(b)))
		if kept := product(unit(float64s(coded(t, a))), unit(float64s(b))); math.Abs(exact-kept) > 2e-3 {
			t.Errorf("cosine %v became %v", exact, kept)
		}
	}
}
