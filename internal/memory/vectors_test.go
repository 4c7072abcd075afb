package memory

import (
	"fmt"
	"testing"
	"time"

	"reverie/internal/search/searchtest"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

func openVectors(t testing.TB, db *store.DB, e vector.Embedder) *vector.Vectors {
	t.Helper()
	v := expect.Must(vector.Open(t.Context(), vector.Config{DB: db, Embedder: e, Patience: time.Minute}))(t)
	return v
}

func complete(t testing.TB, v *vector.Vectors) {
	t.Helper()
	expect.OK(t, v.Complete(t.Context()))
}

func countRows(t testing.TB, db *store.DB, query string, args ...any) (n int) {
	t.Helper()
	expect.OK(t, db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

// near10 lists the entries nearest to said.
func near10(t testing.TB, v *vector.Vectors, said string, scopes ...Scope) (numbers []int64) {
	t.Helper()
	for _, l := range expect.Must(v.Nearest(t.Context(), v.EmbedQuery(t.Context(), said), vector.Filter{Scopes: scopes}, 10))(t) {
		if l.Cosine > .3 || l.Window > .3 { // unrelated words are about at right angles
			numbers = append(numbers, l.Doc)
		}
	}
	return numbers
}

// knows compares what v has in memory with the database.
func knows(t testing.TB, v *vector.Vectors, db *store.DB, e *searchtest.Embedder) {
	t.Helper()
	fresh := openVectors(t, db, e)
	if s := v.Status(t.Context()); s.Done != s.Total {
		t.Errorf("vectors of %d of %d memories", s.Done, s.Total)
	}
	expect.Equal(t, countRows(t, db, `SELECT count(*) FROM embedding WHERE hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten')`), 0, "vectors of no memory")
	w := vector.Filter{Scopes: expect.Must(OpenFTS(db).Scopes(t.Context()))(t), Past: true}
	for _, said := range []string{"anything", "heron", "we talk"} {
		q := searchtest.WordVector(said, e.Dim)
		expect.Equal(t, fmt.Sprint(expect.Must(v.Nearest(t.Context(), q, w, 1000))(t)), fmt.Sprint(expect.Must(fresh.Nearest(t.Context(), q, w, 1000))(t)), "nearest to "+said)
	}
}
