package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/store/storetest"
	"reverie/internal/text"
)

// wordEmbedder gives each word a direction and a text the sum of those of its words.
type wordEmbedder struct {
	name string
	dim  int

	mu      sync.Mutex
	err     error           // every request fails with it
	refuses string          // a word that no request may hold
	started chan<- struct{} // told of each request, which then waits for release
	release <-chan struct{}
	texts   []string // that were embedded
	calls   int
}

func (e *wordEmbedder) Name() string { return e.name }

func (e *wordEmbedder) set(f func(*wordEmbedder)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e)
}

func (e *wordEmbedder) asked() (texts []string, calls int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.texts), e.calls
}

func (e *wordEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	e.calls++
	started, release, err, refuses, dim := e.started, e.release, e.err, e.refuses, e.dim
	e.mu.Unlock()
	if started != nil {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if refuses != "" && strings.Contains(text, refuses) {
			return nil, errors.New("bad text")
		}
		out[i] = wordVector(text, dim)
	}
	e.set(func(e *wordEmbedder) { e.texts = append(e.texts, texts...) })
	return out, nil
}

// wordVector is nil for a text without words.
func wordVector(text string, dim int) []float32 {
	var v []float32
	for _, w := range strings.Fields(strings.ToLower(text)) {
		if w = strings.Trim(w, ".!"); w == "" {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(w))
		r := rand.New(rand.NewPCG(h.Sum64(), 1))
		if v == nil {
			v = make([]float32, dim)
		}
		for i := range v {
			v[i] += float32(r.NormFloat64())
		}
	}
	return v
}

func vectorDB(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db := must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func openVectors(t testing.TB, db *sql.DB, e Embedder) *Vectors {
	t.Helper()
	v := must(OpenVectors(t.Context(), VectorConfig{DB: db, Embedder: e, Patience: time.Minute}))(t)
	return v
}

var firstDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// entered stores entries and returns their numbers. What they lack is filled in.
func entered(t testing.TB, db *sql.DB, all ...Entry) []int64 {
	t.Helper()
	tx := must(db.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	var numbers []int64
	for _, e := range all {
		e.ID, e.Rev, e.Kind, e.Source = newID(), 1, Fact, Imported
		e.State = cmp.Or(e.State, Active)
		e.Scope = cmp.Or(e.Scope, Shared)
		if e.ObservedAt.IsZero() {
			e.ObservedAt = firstDay
		}
		e.CreatedAt, e.UpdatedAt = firstDay, firstDay
		n := must(insertEntry(t.Context(), tx, e, "test", "batch"))(t)
		numbers = append(numbers, n)
	}
	noError(t, tx.Commit())
	return numbers
}

// alter changes the row n and says so in the journal.
func alterRow(t testing.TB, db *sql.DB, n int64, op, set string, then ...func(*sql.Tx) error) {
	t.Helper()
	tx := must(db.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	_, err := tx.ExecContext(t.Context(), `INSERT INTO memory_op (batch, at, actor, op, entry) SELECT 'b', 0, 'test', ?, id FROM memory WHERE n = ?`, op, n)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), `UPDATE memory SET `+set+` WHERE n = ?`, n)
	}
	for _, f := range then {
		err = cmp.Or(err, f(tx))
	}
	noError(t, cmp.Or(err, tx.Commit()))
}

func forgotten(t testing.TB, db *sql.DB, n int64) {
	t.Helper()
	var hash string
	noError(t, db.QueryRowContext(t.Context(), `SELECT hash FROM memory WHERE n = ?`, n).Scan(&hash))
	alterRow(t, db, n, "forget", `text = '', hash = '', state = 'forgotten'`, func(tx *sql.Tx) error { return forgetVectors(t.Context(), tx, hash) })
}

func complete(t testing.TB, v *Vectors) {
	t.Helper()
	noError(t, v.Complete(t.Context(), nil))
}

// around lists the entries nearest to text.
func near10(t testing.TB, v *Vectors, text string, w wanted) []int64 {
	t.Helper()
	found := must(v.nearest(t.Context(), v.Question(t.Context(), text), w, 10))(t)
	var numbers []int64
	for _, l := range found {
		if l.Cosine > .3 || l.Window > .3 { // unrelated words are about at right angles
			numbers = append(numbers, l.N)
		}
	}
	return numbers
}

func inScope(scopes ...Scope) wanted { return wanted{scopes: scopes} }

// vectorFaults counts the vectors that are damaged, those that are missing, and those that belong to no memory.
func vectorFaults(t testing.TB, v *Vectors) (n [3]int) {
	t.Helper()
	space, dim := v.current()
	noError(t, v.db.QueryRow(`SELECT coalesce(sum(v.hash IS NOT NULL AND `+unmade+`), 0), coalesce(sum(v.hash IS NULL), 0),
		(SELECT count(*) FROM memory_vector WHERE hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten'))`+withVector, space, dim).Scan(&n[0], &n[1], &n[2]))
	return n
}

// isClean looks for faults of the vectors, and compares what is in memory of them with the database.
func isClean(t testing.TB, v *Vectors) {
	t.Helper()
	equal(t, "damaged, missing and needless", vectorFaults(t, v), [3]int{})
	fresh := openVectors(t, v.db, v.embedder)
	if _, err := v.next(t.Context(), 1); err != nil { // takes in what others made
		t.Fatal(err)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	noError(t, fresh.open(t.Context(), slices.Collect(maps.Keys(v.index.scopes))))
	entries := 0
	for scope, c := range v.index.scopes {
		entries += len(c.order)
		if !slices.EqualFunc(c.order, fresh.index.scopes[scope].order, func(a, b *vectorEntry) bool { return reflect.DeepEqual(a, b) }) || c.docs.Count() != len(c.order) {
			t.Errorf("%s: the vectors in memory are not those of the database", scope)
		}
		for _, e := range c.order {
			same(t, fmt.Sprintf("%s: the document of entry %d is", scope, e.n), must(c.docs.GetByID(t.Context(), e.document()))(t).Embedding, e.vec)
		}
	}
	if entries != len(v.index.entries) || len(v.index.waiting) > 0 {
		t.Errorf("%d entries in %d places; %d wait", entries, len(v.index.entries), len(v.index.waiting))
	}
}

// likeness compares entries of scopes with q.
func likeness(t testing.TB, v *Vectors, q []float32, entries []int64, scopes ...Scope) map[int64]Likeness {
	t.Helper()
	err := v.open(t.Context(), scopes)
	all, more := v.compare(t.Context(), q, entries)
	noError(t, cmp.Or(err, more))
	like := map[int64]Likeness{}
	for _, l := range all {
		like[l.N] = l
	}
	return like
}

func countRows(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	noError(t, db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

func TestNearest(t *testing.T) {
	db := vectorDB(t, t.TempDir())
	me, you, room := Private("@me:x"), Private("@you:x"), Room("!r:x")
	n := entered(t, db,
		Entry{Scope: me, Text: "cats purr"},
		Entry{Scope: you, Text: "cats bite"},
		Entry{Scope: room, Text: "cats sleep"},
		Entry{Scope: Shared, Text: "cats eat"},
		Entry{Scope: me, Text: "cats swim", State: Superseded},
		Entry{Scope: me, Text: "cats climb", State: Archived},
		Entry{Scope: me, Text: "cats purr loudly", State: Merged},
		Entry{Scope: me, Text: "cats run", ObservedAt: firstDay.AddDate(0, 0, 5)},
		Entry{Scope: me, Text: "dogs bark"},
		Entry{Scope: me, Text: "..."},
	)
	v := openVectors(t, db, &wordEmbedder{name: "words", dim: 300})
	complete(t, v)
	isClean(t, v)
	ctx := t.Context()
	q := v.Question(ctx, "cats")
	day := firstDay.AddDate(0, 0, 1)
	for name, tt := range map[string]struct {
		w    wanted
		want []int64
	}{
		"mine": {inScope(me, Shared), []int64{n[0], n[3], n[7]}}, "a room's": {inScope(room, Shared), []int64{n[2], n[3]}},
		"yours": {inScope(you), []int64{n[1]}}, "nobody's": {inScope(), nil}, "a stranger's": {inScope(Private("@other:x")), nil},
		"named twice":  {inScope(room, room), []int64{n[2]}},
		"the past too": {wanted{scopes: []Scope{me}, past: true}, []int64{n[0], n[4], n[5], n[7]}},
		"later":        {wanted{scopes: []Scope{me}, after: day}, []int64{n[7]}}, "earlier": {wanted{scopes: []Scope{me}, before: day}, []int64{n[0]}},
		"at the edge": {wanted{scopes: []Scope{me}, after: firstDay, before: firstDay.AddDate(0, 0, 5)}, []int64{n[0]}},
	} {
		t.Run(name, func(t *testing.T) {
			got := near10(t, v, "cats", tt.w)
			slices.Sort(got)
			same(t, "found", got, tt.want)
		})
	}
	found := must(v.nearest(ctx, v.Question(ctx, "cats eat"), inScope(me, Shared, room), 2))(t)
	never(t, len(found) != 2 || found[0].N != n[3] || found[0].Cosine < .999 || found[0].Window != found[0].Cosine, "the same words are found as %v", found)
	for _, q := range [][]float32{nil, q[:10], make([]float32, 300), append([]float32{float32(math.Inf(1))}, q[1:]...)} {
		sized(t, fmt.Sprintf("vector %v finds", q), must(v.nearest(ctx, q, inScope(me), 5))(t), 0)
	}
	like := likeness(t, v, q, []int64{n[0], n[8], n[9], n[6], 12345}, me)
	never(t, len(like) != 2 || like[n[0]].Cosine < .5 || math.Abs(like[n[8]].Cosine) > .3 || like[n[8]].N != n[8], "likeness %v", like)
}

// TestForgetWhileEmbedding: a text that is forgotten while its vector is being made
// gets none.
func TestForgetWhileEmbedding(t *testing.T) {
	db := vectorDB(t, t.TempDir())
	n := entered(t, db, Entry{Text: "a secret"}, Entry{Text: "no secret"})
	started, release := make(chan struct{}), make(chan struct{})
	v := openVectors(t, db, &wordEmbedder{name: "words", dim: 50, started: started, release: release})
	var wg sync.WaitGroup
	wg.Go(func() { complete(t, v) })
	<-started
	forgotten(t, db, n[0])
	close(release)
	wg.Wait()
	equal(t, "vectors, want that of the other text", countRows(t, db, `SELECT count(*) FROM memory_vector`), 1)
	if s := v.Status(t.Context()); s.Done != 1 || s.Total != 1 {
		t.Errorf("status %+v", s)
	}
	isClean(t, v)
}

// TestVectorsReopen: what was embedded is not embedded again, and found as before.
func TestVectorsReopen(t *testing.T) {
	dir := t.TempDir()
	db := vectorDB(t, dir)
	n := entered(t, db, append(many(100), Entry{Text: "..."})...)
	v := openVectors(t, db, &wordEmbedder{name: "words", dim: 70})
	complete(t, v)
	find := func() string {
		return fmt.Sprint(must(v.nearest(t.Context(), wordVector("fact42", 70), inScope(Shared), 5))(t))
	}
	before, again := find(), &wordEmbedder{name: "words", dim: 70}
	v = openVectors(t, vectorDB(t, dir), again)
	complete(t, v)
	if texts, _ := again.asked(); len(texts) > 0 {
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

// TestVectorsDamaged: a damaged vector is found, not used, and made again.
func TestVectorsDamaged(t *testing.T) {
	db := vectorDB(t, t.TempDir())
	n := entered(t, db, Entry{Text: "cats purr"}, Entry{Text: "cats bite"}, Entry{Text: "cats sleep"}, Entry{Text: "cats eat"})
	e := &wordEmbedder{name: "words", dim: 64}
	v := openVectors(t, db, e)
	complete(t, v)
	for i, damage := range []string{`vec = x'0102'`, `vec = zeroblob(64)`, `hash = 'nobody'`} {
		must(db.ExecContext(t.Context(), `UPDATE memory_vector SET `+damage+` WHERE hash = (SELECT hash FROM memory WHERE n = ?)`, n[i]))(t)
	}
	equal(t, "damaged, missing and needless", vectorFaults(t, v), [3]int{2, 1, 1})
	must(db.ExecContext(t.Context(), `UPDATE memory_vector SET vec = ? WHERE hash = ?`, append(make([]byte, 63), 1), text.Hash("cats eat")))(t)
	v = openVectors(t, db, e)
	if got := near10(t, v, "cats", inScope(Shared)); slices.ContainsFunc(n[:3], func(n int64) bool { return slices.Contains(got, n) }) {
		t.Errorf("found %v", got)
	}
	noError(t, v.Rebuild(t.Context(), nil))
	isClean(t, v)
	if got := near10(t, v, "cats", inScope(Shared)); len(got) != 3 { // the fourth was replaced by a good vector of something else
		t.Errorf("found %v", got)
	}
}
