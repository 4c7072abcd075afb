package vector

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/search/searchtest"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

func openVectors(t testing.TB, db *store.DB, e Embedder) *Vectors {
	t.Helper()
	v := expect.Must(Open(t.Context(), Config{DB: db, Embedder: e, Patience: time.Minute}))(t)
	return v
}

func complete(t testing.TB, v *Vectors) {
	t.Helper()
	expect.OK(t, v.Complete(t.Context()))
}

// around lists the entries nearest to text.
func near10(t testing.TB, v *Vectors, text string, w Filter) []int64 {
	t.Helper()
	found := expect.Must(v.Nearest(t.Context(), v.EmbedQuery(t.Context(), text), w, 10))(t)
	var numbers []int64
	for _, l := range found {
		if l.Cosine > .3 || l.Window > .3 { // unrelated words are about at right angles
			numbers = append(numbers, l.Doc)
		}
	}
	return numbers
}

func inScope(scopes ...trust.Readers) Filter { return Filter{Scopes: scopes} }

// vectorFaults counts the vectors that are missing, and those that belong to no memory.
func vectorFaults(t testing.TB, v *Vectors) (n [2]int) {
	t.Helper()
	space := v.Space().No
	expect.OK(t, v.db.QueryRow(`SELECT coalesce(sum(v.hash IS NULL), 0),
		(SELECT count(*) FROM embedding WHERE hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten'))`+docsWithVectors, space).Scan(&n[0], &n[1]))
	return n
}

// isClean looks for faults of the vectors, and compares what is in memory of them with the database.
func isClean(t testing.TB, v *Vectors) {
	t.Helper()
	expect.Equal(t, vectorFaults(t, v), [2]int{}, "missing and needless")
	fresh := openVectors(t, v.db, v.embedder)
	if _, err := v.nextMissing(t.Context(), 1); err != nil { // takes in what others made
		t.Fatal(err)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	expect.OK(t, fresh.loadScopes(t.Context(), slices.Collect(maps.Keys(v.index.scopes))))
	entries := 0
	for scope, c := range v.index.scopes {
		entries += len(c.order)
		if !slices.EqualFunc(c.order, fresh.index.scopes[scope].order, func(a, b *vectorEntry) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: the vectors in memory are not those of the database", scope)
		}
	}
	if entries != len(v.index.entries) || len(v.index.waiting) > 0 {
		t.Errorf("%d entries in %d places; %d wait", entries, len(v.index.entries), len(v.index.waiting))
	}
}

// likeness compares entries of scopes with q.
func likeness(t testing.TB, v *Vectors, q []float32, entries []int64, scopes ...trust.Readers) map[int64]Similarity {
	t.Helper()
	err := v.loadScopes(t.Context(), scopes)
	all, more := v.Compare(t.Context(), q, entries)
	expect.OK(t, cmp.Or(err, more))
	like := map[int64]Similarity{}
	for _, l := range all {
		like[l.Doc] = l
	}
	return like
}

func countRows(t testing.TB, db *store.DB, query string, args ...any) (n int) {
	t.Helper()
	expect.OK(t, db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

func TestNearest(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	me, you, room := trust.PersonReaders("@me:x"), trust.PersonReaders("@you:x"), trust.RoomReaders("!r:x")
	n := searchtest.Enter(t, db,
		searchtest.Doc{Scope: me, Text: "cats purr"},
		searchtest.Doc{Scope: you, Text: "cats bite"},
		searchtest.Doc{Scope: room, Text: "cats sleep"},
		searchtest.Doc{Scope: trust.Everybody, Text: "cats eat"},
		searchtest.Doc{Scope: me, Text: "cats swim", State: "superseded"},
		searchtest.Doc{Scope: me, Text: "cats climb", State: "archived"},
		searchtest.Doc{Scope: me, Text: "cats purr loudly", State: "merged"},
		searchtest.Doc{Scope: me, Text: "cats run", ObservedAt: searchtest.Day.AddDate(0, 0, 5)},
		searchtest.Doc{Scope: me, Text: "dogs bark"},
		searchtest.Doc{Scope: me, Text: "..."},
	)
	v := openVectors(t, db, &searchtest.Embedder{Model: "words", Dim: 300})
	complete(t, v)
	isClean(t, v)
	ctx := t.Context()
	q := v.EmbedQuery(ctx, "cats")
	for name, tt := range map[string]struct {
		w    Filter
		want []int64
	}{
		"mine": {inScope(me, trust.Everybody), []int64{n[0], n[3], n[7]}}, "a room's": {inScope(room, trust.Everybody), []int64{n[2], n[3]}},
		"yours": {inScope(you), []int64{n[1]}}, "nobody's": {inScope(), nil}, "a stranger's": {inScope(trust.PersonReaders("@other:x")), nil},
		"named twice":  {inScope(room, room), []int64{n[2]}},
		"the past too": {Filter{Scopes: []trust.Readers{me}, Past: true}, []int64{n[0], n[4], n[5], n[7]}},
	} {
		t.Run(name, func(t *testing.T) {
			got := near10(t, v, "cats", tt.w)
			slices.Sort(got)
			expect.EqualSlice(t, got, tt.want, "found")
		})
	}
	found := expect.Must(v.Nearest(ctx, v.EmbedQuery(ctx, "cats eat"), inScope(me, trust.Everybody, room), 2))(t)
	expect.False(t, len(found) != 2 || found[0].Doc != n[3] || found[0].Cosine < .999 || found[0].Window != found[0].Cosine, "the same words are found as %v", found)
	for _, q := range [][]float32{nil, q[:10], make([]float32, 300), append([]float32{float32(math.Inf(1))}, q[1:]...)} {
		expect.Len(t, expect.Must(v.Nearest(ctx, q, inScope(me), 5))(t), 0, fmt.Sprintf("vector %v finds", q))
	}
	like := likeness(t, v, q, []int64{n[0], n[8], n[9], n[6], 12345}, me)
	expect.False(t, len(like) != 2 || like[n[0]].Cosine < .5 || math.Abs(like[n[8]].Cosine) > .3 || like[n[8]].Doc != n[8], "likeness %v", like)
}

// TestForgetWhileEmbedding: a text that is forgotten while its vector is being made
// gets none.
func TestForgetWhileEmbedding(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	n := searchtest.Enter(t, db, searchtest.Doc{Text: "a secret"}, searchtest.Doc{Text: "no secret"})
	started, release := make(chan struct{}), make(chan struct{})
	v := openVectors(t, db, &searchtest.Embedder{Model: "words", Dim: 50, Started: started, Release: release})
	var wg sync.WaitGroup
	wg.Go(func() { complete(t, v) })
	<-started
	searchtest.Forgotten(t, db, n[0], Forget)
	close(release)
	wg.Wait()
	expect.Equal(t, countRows(t, db, `SELECT count(*) FROM embedding`), 1, "vectors, want that of the other text")
	if s := v.Status(t.Context()); s.Done != 1 || s.Total != 1 {
		t.Errorf("status %+v", s)
	}
	isClean(t, v)
}

// TestVectorsReopen: what was embedded is not embedded again, and found as before.
func TestVectorsReopen(t *testing.T) {
	dir := t.TempDir()
	db := searchtest.DB(t, dir)
	n := searchtest.Enter(t, db, append(searchtest.Many(100), searchtest.Doc{Text: "..."})...)
	v := openVectors(t, db, &searchtest.Embedder{Model: "words", Dim: 70})
	complete(t, v)
	find := func() string {
		return fmt.Sprint(expect.Must(v.Nearest(t.Context(), searchtest.WordVector("fact42", 70), inScope(trust.Everybody), 5))(t))
	}
	before, again := find(), &searchtest.Embedder{Model: "words", Dim: 70}
	v = openVectors(t, searchtest.DB(t, dir), again)
	complete(t, v)
	if texts, _ := again.Asked(); len(texts) > 0 {
		t.Errorf("embedded again: %q", texts)
	}
	if after := find(); after != before || !strings.Contains(after, fmt.Sprint(n[42])) {
		t.Errorf("after reopening %s, before %s", after, before)
	}
	isClean(t, v)
	if s := v.Status(t.Context()); s.Done != 101 || s.Total != 101 || s.Dimension != 70 {
		t.Errorf("status %+v", s)
	}
}
