package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reverie/internal/search"
	"reverie/internal/search/qdrant"
	"reverie/internal/search/qdrant/standin"
	"reverie/internal/search/searchtest"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// points is a server, with the vectors that it gets.
type points struct {
	*qdrant.Points
	vectors *vector.Vectors
}

// stand is a Qdrant server for a test.
func stand(t testing.TB) (*standin.Server, string) {
	t.Helper()
	s := &standin.Server{Key: "hunter9"}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// openPoints is what db's vectors, made by e, are found with on the server at url.
func openPoints(t testing.TB, db *store.DB, e vector.Embedder, url string) points {
	t.Helper()
	return openPointsWith(t, db, e, qdrant.Config{URL: url, Key: "hunter9"})
}

func openPointsWith(t testing.TB, db *store.DB, e vector.Embedder, c qdrant.Config) points {
	t.Helper()
	v := expect.Must(vector.Open(t.Context(), vector.Config{DB: db, Embedder: e, Patience: time.Minute}))(t)
	c.Vectors = v
	if c.Collection == "" {
		c.Collection = "mem"
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	return points{qdrant.Open(c), v}
}

// served is f with a Qdrant server, of a model that knows words and nothing of their meaning.
func served(t testing.TB, f *FTS) index {
	_, url := stand(t)
	p := openPoints(t, f.db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	return read{OpenHybrid(f, p.vectors, p)}
}

// fed sends all there is.
func fed(t testing.TB, p points) {
	t.Helper()
	complete(t, p.vectors)
	expect.OK(t, p.Complete(t.Context()))
}

// onServer lists the entries of which the server holds points in any collection of
// db's, by their texts.
func onServer(t testing.TB, s *standin.Server, db *store.DB) []string {
	t.Helper()
	texts := []string{}
	for _, name := range s.Collections() {
		for id, p := range s.Points(name) {
			var text string
			entry, _ := p.Payload["entry"].(string)
			if err := db.QueryRow(`SELECT text FROM memory WHERE id = ?`, entry).Scan(&text); err != nil {
				text = fmt.Sprintf("a stranger, %s: %v", id, err)
			}
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return texts
}

// TestPointsAreFed: what is on the server is what the entries are, after whatever
// change, and of their words there is nothing.
func TestPointsAreFed(t *testing.T) {
	s, url := stand(t)
	store := openAt(t, t.TempDir())
	db := store.db
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	ctx, me := t.Context(), as(owner)
	old := noted(t, store, Private(owner), "cats purr", owner)
	fed(t, p)
	expect.Len(t, s.Collections(), 1, "collections")
	expect.Equal(t, fmt.Sprint(s.Indexes(s.Collections()[0])), "map[at:integer scope:keyword state:keyword]", "indexes")
	noted(t, store, Shared, "...", owner) // has no vector
	room := noted(t, store, Room(room), "dogs bark", owner)
	new := expect.Must(store.Supersede(ctx, me, old.ID, "cats bite"))(t)
	complete(t, p.vectors)
	expect.Len(t, onServer(t, s, db), 1, "what is to be sent is there")
	fed(t, p)
	verified(t, s, db)
	want := map[string]string{old.ID: "2 superseded", new.ID: "1 active", room.ID: "1 active"}
	for _, point := range s.Points(s.Collections()[0]) {
		id, _ := point.Payload["entry"].(string)
		expect.Equal(t, fmt.Sprint(point.Payload["rev"], " ", point.Payload["state"]), want[id], id)
		expect.Len(t, slices.Collect(maps.Keys(point.Payload)), 5, "the server is told %v", point.Payload)
		delete(want, id)
	}
	expect.Equal(t, len(want), 0, "entries that are not on the server")
	before := len(s.Calls())
	fed(t, p)
	expect.Len(t, s.Calls()[before:], 0, "nothing changed, and the server is asked")
}

// TestQdrantFindsAsMuch: with a server nothing else is found than with vectors at
// hand, neighbours in conversations included.
func TestQdrantFindsAsMuch(t *testing.T) {
	t.Parallel()
	f, set := labelled(t)
	here, there := joined(t, f).(read), served(t, f).(read)
	for _, x := range []read{here, there} {
		expect.OK(t, x.Complete(t.Context()))
	}
	differ := 0
	for i, q := range set.Questions {
		if i%6 > 0 {
			continue
		}
		query := Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, K: 10, Floor: search.DefaultFloor}
		a, b := refs(t, here.Hybrid, query), refs(t, there.Hybrid, query)
		if !slices.Equal(a, b) {
			differ++
		}
	}
	expect.False(t, differ > 0, "%d of %d answers differ", differ, len(set.Questions)/6)
}

// TestLyingServer: whatever the server says, nothing of another scope or state is shown.
func TestLyingServer(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"apple pie","ref":"mine","scope":"private:@a:x"}`, `{"text":"apple cake","ref":"theirs","scope":"private:@b:x"}`,
		`{"text":"apple juice","ref":"past","scope":"private:@a:x"}`, `{"text":"apple tart","ref":"gone","scope":"private:@a:x"}`, `{"text":"apple jam","ref":"early","scope":"private:@a:x","observed_at":"2020-01-01"}`)
	alter(t, f, `state = 'superseded'`, "past")
	var gone string
	expect.OK(t, f.db.QueryRow(`SELECT id FROM memory WHERE ref = 'gone'`).Scan(&gone))
	s, url := stand(t)
	p := openPoints(t, f.db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	fed(t, p)
	alter(t, f, `text = '', hash = '', ref = '', state = 'forgotten'`, "gone") // and the server was not told
	h := OpenHybrid(f, p.vectors, p)
	lies := func(scope any) {
		var points []map[string]any
		for id, point := range s.Points(s.Collections()[0]) {
			point.Payload["scope"], point.Payload["state"] = scope, "active"
			points = append(points, map[string]any{"id": id, "score": 1, "payload": point.Payload})
		}
		points = append(points, map[string]any{"id": "00000000-0000-5000-8000-000000000000", "payload": map[string]any{"entry": "x", "scope": scope}}, map[string]any{})
		s.Break(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/query") {
				return false
			}
			json.NewEncoder(w).Encode(map[string]any{"result": map[string]any{"points": points}})
			return true
		})
	}
	if len(s.Points(s.Collections()[0])) != 5 {
		t.Fatalf("the server holds %v", s.Points(s.Collections()[0]))
	}
	for _, scope := range []any{"private:@a:x", "private:@b:x"} {
		lies(scope)
		for name, tt := range map[string]struct {
			q    Query
			w    vector.Filter
			want []string
		}{
			"mine": {Query{Text: "apple"}, vector.Filter{}, []string{"early", "mine"}},
			"past": {Query{Text: "apple", Past: true}, vector.Filter{Past: true}, []string{"early", "mine", "past"}},
		} {
			tt.q.Scopes, tt.w.Scopes = []Scope{"private:@a:x"}, []Scope{"private:@a:x"}
			got := refs(t, h, tt.q)
			slices.Sort(got)
			want(t, fmt.Sprint(scope, ", ", name), got, tt.want...)
			// Nor do they get as far as the full-text index, which would decide.
			near := expect.Must(p.Nearest(t.Context(), p.vectors.EmbedQuery(t.Context(), "apple"), tt.w, 100))(t)
			var there []string
			for _, l := range near {
				var ref string
				expect.OK(t, f.db.QueryRow(`SELECT ref FROM memory WHERE n = ?`, l.Doc).Scan(&ref))
				there = append(there, ref)
			}
			slices.Sort(there)
			want(t, fmt.Sprint(scope, ", ", name, ", nearest"), there, tt.want...)
		}
	}
}

// TestForgottenWhileDown: it is not found, and leaves when the server is back. While the
// server is up it leaves at once, also by a process that has no vectors.
func TestForgottenWhileDown(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, url := stand(t)
	db := openAt(t, dir).db
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	store := openWith(t, Config{DB: db, Dir: dir, Owner: owner, Backend: "qdrant", Vectors: p.vectors, Server: p.Points})
	me := as(owner)
	gone, kept := noted(t, store, Private(owner), "the code is 4711", owner), noted(t, store, Private(owner), "we keep bees", owner)
	fed(t, p)
	if got := onServer(t, s, db); len(got) != 2 {
		t.Fatalf("the server holds %q", got)
	}
	s.Break(standin.Refuse(503))
	expect.Must(store.Forget(ctx, me, gone.ID))(t)
	noted(t, store, Private(owner), "and cats", owner)
	complete(t, p.vectors)
	s.Break(nil)
	expect.Len(t, found(t, store, "code 4711", Private(owner)), 0, "forgotten, and found")
	if got := onServer(t, s, db); !slices.Equal(got, []string{"", "we keep bees"}) {
		t.Fatalf("the server holds %q", got)
	}
	fed(t, p)
	expect.EqualSlice(t, onServer(t, s, db), []string{"and cats", "we keep bees"}, "the server holds")
	verified(t, s, db)
	away := qdrant.Open(qdrant.Config{URL: url, Key: "hunter9", Collection: "mem"})
	store.server = away
	expect.Must(store.Forget(ctx, me, kept.ID))(t)
	expect.EqualSlice(t, onServer(t, s, db), []string{"and cats"}, "the server holds")
}

// TestForgottenWhileSent: what is forgotten by another process while it is on its
// way to the server does not stay there.
func TestForgottenWhileSent(t *testing.T) {
	dir := t.TempDir()
	s, url := stand(t)
	store := openAt(t, dir)
	p := openPoints(t, store.db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	noted(t, store, Shared, "we keep bees", owner)
	fed(t, p)
	gone := noted(t, store, Shared, "the code is 4711", owner)
	complete(t, p.vectors)
	other := qdrant.Open(qdrant.Config{URL: url, Key: "hunter9", Collection: "mem"})
	s.Break(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/points") {
			s.Break(nil)
			expect.Must(store.Forget(context.Background(), everything, gone.ID))(t)
			other.Forget(context.Background(), []string{gone.ID})
		}
		return false
	})
	fed(t, p)
	expect.EqualSlice(t, onServer(t, s, store.db), []string{"we keep bees"}, "the server holds")
	verified(t, s, store.db)
}

// TestRealQdrant runs against a server that is really one.
func TestRealQdrant(t *testing.T) {
	url := os.Getenv("QDRANT_URL")
	if url == "" {
		t.Skip("QDRANT_URL names no server (QDRANT_KEY its key), so Qdrant is tested against a stand-in only")
	}
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a","observed_at":"2026-01-01"}`, `{"text":"cats bite","ref":"b","scope":"private:@b:x"}`, `{"text":"cats sleep","ref":"c"}`)
	p := openPointsWith(t, f.db, &searchtest.Embedder{Model: "words", Dim: 30}, qdrant.Config{
		URL: url, Key: os.Getenv("QDRANT_KEY"), Collection: "reverie-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)})
	fed(t, p)
	want(t, "shared", refs(t, OpenHybrid(f, p.vectors, p), Query{Text: "cats purr", K: 1}), "a")
	alter(t, f, `text = '', hash = '', ref = '', state = 'forgotten'`, "a")
	expect.OK(t, p.Rebuild(t.Context()))
	want(t, "forgotten", refs(t, OpenHybrid(f, p.vectors, p), Query{Text: "cats", K: 2}), "c")
}

// TestQdrantAway: while the server is unavailable, search falls back to full text.
func TestQdrantAway(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a"}`, `{"text":"dogs bark at cats","ref":"b"}`)
	s, url := stand(t)
	p := openPoints(t, f.db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	fed(t, p)
	h, q := OpenHybrid(f, p.vectors, p), Query{Text: "do cats purr?", Scopes: []Scope{Shared}}
	expect.Equal(t, fmt.Sprint(expect.Must(h.Search(t.Context(), q))(t)) == fmt.Sprint(expect.Must(f.Search(t.Context(), q))(t)), false, "with the server")
	s.Break(standin.Refuse(503))
	expect.Equal(t, fmt.Sprint(expect.Must(h.Search(t.Context(), q))(t)), fmt.Sprint(expect.Must(f.Search(t.Context(), q))(t)), "found")
}

// verified compares what the server holds with the entries that have a vector.
func verified(t testing.TB, s *standin.Server, db *store.DB) {
	t.Helper()
	held := []string{}
	for _, name := range s.Collections() {
		for _, p := range s.Points(name) {
			held = append(held, fmt.Sprintf("%v %v %v %v %.0f", p.Payload["entry"], p.Payload["rev"], p.Payload["scope"], p.Payload["state"], p.Payload["at"]))
		}
	}
	slices.Sort(held)
	expect.EqualSlice(t, held, expect.Must(store.Column[string](t.Context(), db, `SELECT DISTINCT m.id || ' ' || m.rev || ' ' || m.scope || ' ' || m.state || ' ' || m.observed_at
		FROM memory AS m JOIN embedding AS v ON v.hash = m.hash WHERE m.state IN ('active', 'superseded', 'archived') AND length(v.vec) > 0 ORDER BY 1`))(t), "the server holds")
}
