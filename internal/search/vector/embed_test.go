package vector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/search/searchtest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"

	"pgregory.net/rapid"
)

// patient waits for something that Run does.
func patient(t testing.TB, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain until %s", what)
}

// running runs v in the background until the test ends, with short rests.
func running(t testing.TB, v *Vectors) {
	t.Helper()
	nap := v.sleep
	v.sleep = func(ctx context.Context, d time.Duration) { nap(ctx, min(d, 100*time.Millisecond)) }
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := v.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
}

// TestRunRepairs: an outage is seen, delays no question, loses nothing, and ends by itself.
// Holds L15.
func TestRunRepairs(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	n := searchtest.Enter(t, db, searchtest.Many(20)...)
	e := &searchtest.Embedder{Model: "words", Dim: 64, Err: errors.New("connection refused")}
	var log bytes.Buffer
	v := openVectors(t, db, e)
	v.health.log = slog.New(slog.NewTextHandler(&log, nil))
	running(t, v)
	patient(t, "the outage is seen", func() bool { return !v.Status(t.Context()).Unreachable.IsZero() })
	_, before := e.Asked()
	for range 50 { // none of these waits for the embedder
		expect.False(t, v.EmbedQuery(t.Context(), "fact1") != nil, "a vector from nowhere")
	}
	if _, after := e.Asked(); after > before+10 {
		t.Errorf("%d requests while it rests", after-before)
	}
	s := v.Status(t.Context())
	if line := s.Line(time.UTC); s.Reason != "connection refused" || !strings.HasPrefix(line.String(), "embeddings: unreachable since "+s.Unreachable.UTC().Format("2006-01-02")) || !strings.HasSuffix(line.String(), ", searching by words") {
		t.Errorf("status %+v: %s", s, line)
	}
	if found, err := v.Nearest(t.Context(), nil, inScope(trust.Everybody), 5); err != nil || found != nil {
		t.Errorf("found %v, %v", found, err)
	}
	e.Set(func(e *searchtest.Embedder) { e.Err = nil })
	v.Wake()
	patient(t, "all is made", func() bool { s := v.Status(t.Context()); return s.Done == 20 && s.Unreachable.IsZero() })
	if got := near10(t, v, "fact7", inScope(trust.Everybody)); len(got) != 1 || got[0] != n[7] {
		t.Errorf("found %v", got)
	}
	isClean(t, v)

	// Nothing is missing now, and an outage is still seen and seen to end.
	e.Set(func(e *searchtest.Embedder) { e.Err = errors.New("off again") })
	expect.False(t, v.EmbedQuery(t.Context(), "something new") != nil || v.Status(t.Context()).Unreachable.IsZero(), "the second outage is not seen")
	expect.False(t, v.EmbedQuery(t.Context(), "fact7") == nil, "what was asked before is not kept ready")
	e.Set(func(e *searchtest.Embedder) { e.Err = nil })
	v.Wake()
	patient(t, "the second outage ends", func() bool { return v.Status(t.Context()).Unreachable.IsZero() })
}

// TestBackoffGrows: while the embedder fails, Run does not hammer it.
func TestBackoffGrows(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	searchtest.Enter(t, db, searchtest.Many(3)...)
	e := &searchtest.Embedder{Model: "words", Dim: 64, Err: errors.New("off")}
	v := openVectors(t, db, e)
	ctx, stop := context.WithCancel(t.Context())
	var naps []string
	v.sleep = func(_ context.Context, d time.Duration) {
		if naps = append(naps, d.Round(time.Second).String()); len(naps) == 12 {
			e.Set(func(e *searchtest.Embedder) { e.Err = nil })
		}
		if len(naps) == 14 {
			stop()
		}
	}
	expect.OK(t, v.Run(ctx))
	expect.Equal(t, strings.Join(naps, " "), "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s 5m0s 0s 10s", "it waited")
}

// TestRefusedText: a text the model does not take holds up no other.
// Holds W11.
func TestRefusedText(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	all := searchtest.Many(40)
	all[3].Text, all[39].Text = "poison one", "poison two"
	n := searchtest.Enter(t, db, all...)
	e := &searchtest.Embedder{Model: "words", Dim: 64, Refuses: "poison"}
	v := openVectors(t, db, e)
	complete(t, v)
	if s := v.Status(t.Context()); s.Done != 40 || !s.UpToDate() {
		t.Errorf("status %+v", s)
	}
	searchtest.Enter(t, db, searchtest.Doc{Text: "later fact"})
	complete(t, v)
	expect.EqualSlice(t, near10(t, v, "fact38", inScope(trust.Everybody)), n[38:39], "found")
	expect.Len(t, near10(t, v, "two", inScope(trust.Everybody)), 0, "found")
	e.Set(func(e *searchtest.Embedder) { e.Refuses = "" })
	expect.OK(t, v.Rebuild(t.Context())) // a model that takes it
	if got := near10(t, v, "two", inScope(trust.Everybody)); len(got) == 0 || got[0] != n[39] {
		t.Errorf("found %v", got)
	}
}

// TestModelChanges: another model, or another length of vectors under the same
// name, has all entries embedded again; old vectors are compared with nothing, and go
// when the new ones are there.
// Holds L22.
func TestModelChanges(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	n := searchtest.Enter(t, db, searchtest.Many(50)...)
	e := &searchtest.Embedder{Model: "small", Dim: 64}
	complete(t, openVectors(t, db, e))

	e = &searchtest.Embedder{Model: "large", Dim: 96}
	v := openVectors(t, db, e)
	if s := v.Status(t.Context()); s.Done != 0 || s.Total != 50 {
		t.Errorf("status %+v", s)
	}
	if got := near10(t, v, "fact7", inScope(trust.Everybody)); got != nil {
		t.Errorf("found %v in the vectors of another model", got)
	}
	expect.OK(t, v.Complete(t.Context()))
	expect.EqualSlice(t, near10(t, v, "fact7", inScope(trust.Everybody)), n[7:8], "found")
	expect.Equal(t, countRows(t, db, `SELECT count(*) FROM embedding`), 100, "vectors before tidying")

	// The length changes: noticed by the next question already.
	e = &searchtest.Embedder{Model: "large", Dim: 128}
	v = openVectors(t, db, e)
	if s := v.Status(t.Context()); s.Done != 50 || s.Dimension != 96 {
		t.Errorf("status %+v", s)
	}
	q := v.EmbedQuery(t.Context(), "fact7")
	if s := v.Status(t.Context()); s.Done != 0 || s.Dimension != 128 || len(q) != 128 {
		t.Errorf("status %+v", s)
	}
	running(t, v)
	patient(t, "old vectors are gone", func() bool {
		return countRows(t, db, `SELECT count(*) FROM embedding`) == 50 && countRows(t, db, `SELECT count(*) FROM embedding_model`) == 1
	})
	expect.EqualSlice(t, near10(t, v, "fact7", inScope(trust.Everybody)), n[7:8], "found")
	isClean(t, v)
}

// Holds W10, P3.
func TestQuestion(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	started, release := make(chan struct{}, 10), make(chan struct{})
	e := &searchtest.Embedder{Model: "words", Dim: 64}
	v := openVectors(t, db, e)
	a := v.EmbedQuery(t.Context(), "cats  purr\n")
	b := v.EmbedQuery(t.Context(), "cats purr")
	if _, calls := e.Asked(); len(a) != 64 || !slices.Equal(a, b) || calls != 1 {
		t.Errorf("%d requests for one question", calls)
	}
	expect.False(t, v.EmbedQuery(t.Context(), " \n") != nil || v.EmbedQuery(t.Context(), "...") != nil || v.EmbedQuery(t.Context(), "...") != nil, "a vector of nothing")
	if _, calls := e.Asked(); calls != 2 || !v.Status(t.Context()).Unreachable.IsZero() {
		t.Errorf("%d requests; %+v", calls, v.Status(t.Context()))
	}
	e.Set(func(e *searchtest.Embedder) { e.Started, e.Release = started, release })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	expect.False(t, v.EmbedQuery(gone, "nobody waits") != nil || !v.Status(t.Context()).Unreachable.IsZero(), "a turn that was stopped is taken for an outage")
	v.patience = 20 * time.Millisecond
	expect.False(t, v.EmbedQuery(t.Context(), "too slow") != nil, "a vector in no time")
	expect.Equal(t, v.Status(t.Context()).Reason, "no answer within 20ms", "status")
}

// TestVectorsTogether: reading, writing, forgetting and embedding at the same time.
func TestVectorsTogether(t *testing.T) {
	dir := t.TempDir()
	db := searchtest.DB(t, dir)
	n := searchtest.Enter(t, db, searchtest.Many(200)...)
	e := &searchtest.Embedder{Model: "words", Dim: 64}
	v := openVectors(t, db, e)
	second := openVectors(t, searchtest.DB(t, dir), e) // another process
	running(t, v)
	running(t, second)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 60 {
			searchtest.Enter(t, db, searchtest.Doc{Text: fmt.Sprint("added ", i), Scope: trust.RoomReaders("!r:x")})
			v.Wake()
		}
	})
	wg.Go(func() {
		for _, n := range n[:60] {
			searchtest.Forgotten(t, db, n, Forget)
		}
	})
	for g := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 100 {
				q := v.EmbedQuery(t.Context(), fmt.Sprint("fact", r.IntN(200)))
				if _, err := v.Nearest(t.Context(), q, inScope(trust.Everybody, trust.RoomReaders("!r:x")), 10); err != nil {
					t.Error(err)
				}
				likeness(t, v, q, n, trust.Everybody)
				v.Status(t.Context())
			}
		})
	}
	wg.Wait()
	for _, v := range []*Vectors{v, second} {
		patient(t, "all is read", func() bool {
			s := v.Status(t.Context())
			return v.Follow(t.Context()) == nil && s.Done == 200 && s.Total == 200
		})
		for _, gone := range n[:60] {
			expect.Equal(t, len(likeness(t, v, searchtest.WordVector("fact", 64), []int64{gone}, trust.Everybody)), 0, "forgotten, and found")
		}
		isClean(t, v)
	}
	expect.Equal(t, countRows(t, db, `SELECT count(*) FROM embedding`), 200, "vectors of 200 texts")
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

func coded(t expect.T, v []float32) []float32 {
	return decodeVector(expect.Must(encodeVector(v))(t), len(v))
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
func taken(t expect.T, e vectorEntry, v []float32) *vectorEntry {
	e.vec = newCode(expect.Must(encodeVector(v))(t), len(v))
	return &e
}

// TestCollection: after any order of adding and removing, every cosine and window is
// what its definition says, and the nearest are the nearest.
// Holds P3.
func TestCollection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const dim = 70
		c := &collection{}
		there := map[int64]*vectorEntry{}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.Int64Range(1, 20).Draw(t, "n")
			if e, known := there[n]; known {
				if c.remove(e); slices.Max(e.vec.numbers) != 0 {
					t.Fatalf("of what was removed is left %v", e.vec)
				}
				delete(there, n)
				continue
			}
			there[n] = taken(t, vectorEntry{n: n, conversation: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "talk"), seq: rapid.Int64Range(0, 5).Draw(t, "seq"),
				observedAt: rapid.SampledFrom([]int64{0, windowGap, windowGap + 1}).Draw(t, "at"), past: rapid.Bool().Draw(t, "past")}, randomVector(r, dim))
			c.add(there[n])
		}
		if len(c.order) != len(there) || !slices.IsSortedFunc(c.order, (*vectorEntry).compare) {
			t.Fatalf("%d entries of %d", len(c.order), len(there))
		}
		q := randomVector(r, dim)
		want := likenesses(there, q)
		find := func(w Filter, k int) []Similarity {
			return c.nearest(newQuery(q), w, k)
		}
		found := find(Filter{Past: true}, 100)
		if len(found) != len(there) {
			t.Fatalf("%d of %d are found", len(found), len(there))
		}
		for i, got := range found {
			w := want[got.Doc]
			expect.False(t, math.Abs(got.Cosine-w.Cosine) > 1e-4 || math.Abs(got.Window-w.Window) > 1e-4, "entry %d: %+v, want %+v", got.Doc, got, w)
			expect.False(t, i > 0 && found[i-1].Cosine+found[i-1].Window < got.Cosine+got.Window, "not in order: %v", found)
		}
		for k := range 3 {
			expect.EqualSlice(t, find(Filter{Past: true}, k), found[:min(k, len(found))], "the nearest")
		}
		for _, got := range find(Filter{}, 100) {
			expect.False(t, there[got.Doc].past, "entry %d does not hold any more", got.Doc)
		}
	})
}

// likenesses are those of entries by their definition.
func likenesses(there map[int64]*vectorEntry, q []float32) map[int64]Similarity {
	qu := unit64(float64s(q))
	all := slices.SortedFunc(maps.Values(there), (*vectorEntry).compare)
	want := map[int64]Similarity{}
	for i, one := range all {
		sum := unit64(float64s(one.vec.vector()))
		for _, step := range []int{-1, 1} {
			j := i + step
			if one.conversation == "" || j < 0 || j >= len(all) || all[j].conversation != one.conversation || max(all[j].observedAt-one.observedAt, one.observedAt-all[j].observedAt) > windowGap {
				continue
			}
			for k, x := range unit64(float64s(all[j].vec.vector())) {
				sum[k] += x / 2
			}
		}
		want[one.n] = Similarity{one.n, product(qu, unit64(float64s(one.vec.vector()))), product(qu, unit64(sum))}
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
