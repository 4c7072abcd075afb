package memory

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory/standin"
)

// stand is a Qdrant server for a test.
func stand(t testing.TB) (*standin.Server, string) {
	t.Helper()
	s := &standin.Server{Key: "hunter9"}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// openPoints is what db's vectors, made by e, are found with on the server at url.
func openPoints(t testing.TB, db *sql.DB, e Embedder, url string) *Points {
	t.Helper()
	return openPointsWith(t, db, e, PointsConfig{URL: url, Key: "hunter9"})
}

func openPointsWith(t testing.TB, db *sql.DB, e Embedder, c PointsConfig) *Points {
	t.Helper()
	v := must(OpenVectors(t.Context(), VectorConfig{DB: db, Embedder: e, Patience: time.Minute}))(t)
	c.DB, c.Vectors, c.Collection = db, v, "mem"
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	p := must(OpenPoints(c))(t)
	return p
}

// served is f with a Qdrant server, of a model that knows words and nothing of their meaning.
func served(t testing.TB, f *FTS) index {
	_, url := stand(t)
	return read{OpenQdrant(f, openPoints(t, f.db, &wordEmbedder{name: "words", dim: 300}, url))}
}

// fed sends all there is.
func fed(t testing.TB, p *Points) {
	t.Helper()
	complete(t, p.vectors)
	noError(t, p.Complete(t.Context()))
}

// pointFaults counts the memories that the server does not hold as they are, and the points that belong to no memory.
func pointFaults(t testing.TB, p *Points) (changed, needless int) {
	t.Helper()
	space, dim := p.vectors.current()
	if space == 0 {
		return 0, 0
	}
	there, strange, err := p.scroll(t.Context(), p.collection(dim))
	noError(t, err)
	d, err := p.compareAll(t.Context(), space, there)
	noError(t, err)
	return len(d.changed), len(d.gone) + len(strange)
}

func verified(t testing.TB, p *Points) {
	t.Helper()
	if changed, needless := pointFaults(t, p); changed+needless > 0 {
		t.Errorf("on the server %d memories are not as they are, and %d points belong to none", changed, needless)
	}
}

// onServer lists the entries of which the server holds points in any collection of
// db's, by their texts.
func onServer(t testing.TB, s *standin.Server, db *sql.DB) []string {
	t.Helper()
	texts := []string{}
	for _, name := range s.Collections() {
		for id, p := range s.Points(name) {
			var text string
			entry, _ := p.Payload["entry"].(string)
			if err := db.QueryRow(`SELECT text FROM memory WHERE id = ?`, entry).Scan(&text); err != nil || pointID(entry) != id {
				text = fmt.Sprintf("a stranger, %s: %v", id, err)
			}
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return texts
}

// differ is how many entries are not on the server as they should be.
func differ(t testing.TB, p *Points) int {
	t.Helper()
	space, _ := p.vectors.current()
	d := must(p.compareAll(t.Context(), space, p.there))(t)
	return len(d.gone) + len(d.changed)
}

// TestPointID: ids are UUIDs and stay what they are.
func TestPointID(t *testing.T) {
	if got := pointID("mem_abc"); got != pointID("mem_abc") || got == pointID("mem_abd") || len(got) != 36 || got[14] != '5' || !strings.ContainsRune("89ab", rune(got[19])) {
		t.Errorf("%s is no UUID of version 5", got)
	}
	if got := pointID("mem_000000000001"); got != "69550910-c5b7-5b4a-a14f-2f3b39636bdd" {
		t.Errorf("an entry's id on the server is now %s; all that is there would be sent again", got)
	}
	for model, want := range map[string]string{"words": "mem_words_300", "a/b": "mem_a-b-", "a:b": "mem_a-b-", strings.Repeat("x", 500): "mem_xxx"} {
		if got := collectionName("mem", model, 300); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "_300") || len(got) > 130 {
			t.Errorf("collection of %.10s: %s", model, got)
		}
	}
	if collectionName("mem", "a/b", 3) == collectionName("mem", "a:b", 3) {
		t.Error("two models share a collection")
	}
}

// TestPointsAreFed: what is on the server is what the entries are, after whatever
// change, and of their words there is nothing.
func TestPointsAreFed(t *testing.T) {
	s, url := stand(t)
	store := openAt(t, t.TempDir())
	db := store.db
	p := openPoints(t, db, &wordEmbedder{name: "words", dim: 300}, url)
	ctx, me := t.Context(), as(owner)
	old := noted(t, store, Private(owner), "cats purr", owner)
	fed(t, p)
	if names := s.Collections(); fmt.Sprint(names) != "[mem_words_300]" {
		t.Errorf("collections %v", names)
	}
	if got := s.Indexes("mem_words_300"); fmt.Sprint(got) != "map[at:integer scope:keyword state:keyword]" {
		t.Errorf("indexes %v", got)
	}
	noted(t, store, Shared, "...", owner) // has no vector
	room := noted(t, store, Room(room), "dogs bark", owner)
	new := must(store.Supersede(ctx, me, old.ID, "cats bite"))(t)
	complete(t, p.vectors)
	if n := differ(t, p); n != 3 {
		t.Errorf("%d entries are to be sent", n)
	}
	fed(t, p)
	verified(t, p)
	for id, want := range map[string]pointPayload{
		old.ID:  {old.ID, 2, Private(owner), Superseded, old.ObservedAt.UnixMilli()},
		new.ID:  {new.ID, 1, Private(owner), Active, new.ObservedAt.UnixMilli()},
		room.ID: {room.ID, 1, room.Scope, Active, room.ObservedAt.UnixMilli()},
	} {
		got, _ := json.Marshal(s.Points("mem_words_300")[pointID(id)].Payload)
		var have pointPayload
		if err := json.Unmarshal(got, &have); err != nil || have != want {
			t.Errorf("the server has %s, want %+v", got, want)
		}
		if len(s.Points("mem_words_300")[pointID(id)].Payload) != 5 {
			t.Errorf("the server is told more: %s", got)
		}
	}
	if err := store.Retire(ctx, me, room.ID); err == nil {
		t.Error("another's") // not visible in a direct chat
	}
	must(store.Share(ctx, me, new.ID))(t)
	must(store.Undo(ctx, me, ""))(t)
	must(store.Forget(ctx, me, new.ID))(t)
	fed(t, p)
	verified(t, p)
	if got := onServer(t, s, db); !slices.Equal(got, []string{"dogs bark"}) {
		t.Errorf("the server holds %q", got)
	}
	before := len(s.Calls())
	fed(t, p)
	if more := s.Calls()[before:]; len(more) > 0 {
		t.Errorf("nothing changed, and the server is asked %q", more)
	}
}

// TestQdrantFindsAsMuch: with a server nothing else is found than with vectors at
// hand, neighbours in conversations included.
func TestQdrantFindsAsMuch(t *testing.T) {
	t.Parallel()
	f, set := labelled(t)
	here, there := joined(t, f).(read), served(t, f).(read)
	for _, x := range []read{here, there} {
		noError(t, x.Complete(t.Context(), nil))
	}
	differ := 0
	for i, q := range set.Questions {
		if i%6 > 0 {
			continue
		}
		query := Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, K: 10, Floor: DefaultFloor}
		a, b := refs(t, here.Hybrid, query), refs(t, there.Hybrid, query)
		if !slices.Equal(a, b) {
			differ++
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d answers differ", differ, len(set.Questions)/6)
	}
}

// TestQdrantOutage: while the server is of no use, in whatever way, answers are those
// of the words alone, it is told so, and afterwards everything is there.
func TestQdrantOutage(t *testing.T) {
	t.Parallel()
	dim := 300
	faults := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"500": standin.Refuse(500), "503": standin.Refuse(503), "401": standin.Refuse(401),
		"slow": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that nobody waits
			<-r.Context().Done()
			return true
		},
		"cut off":  func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, "<html>"); return true },
		"too long": func(w http.ResponseWriter, _ *http.Request) bool { w.Write(make([]byte, maxAnswer+2)); return true },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			f := openIndex(t)
			remember(t, f, `{"text":"cats purr","ref":"a"}`, `{"text":"dogs bark at cats","ref":"b"}`)
			s, url := stand(t)
			var log strings.Builder
			p := openPointsWith(t, f.db, &wordEmbedder{name: "words", dim: dim}, PointsConfig{URL: url, Key: "hunter9", Patience: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
			now := time.Now()
			p.now = func() time.Time { return now }
			p.server.http.Timeout = time.Second // for feeding; nothing is measured by it
			fed(t, p)
			h := OpenQdrant(f, p)
			s.Break(fault)
			q := Query{Text: "do cats purr?", Scopes: []Scope{Shared}}
			for range 2 {
				got := must(h.Search(t.Context(), q))(t)
				words, err := f.Search(t.Context(), q)
				if err != nil || fmt.Sprint(got) != fmt.Sprint(words) {
					t.Errorf("found %v, words alone find %v, %v", got, words, err)
				}
			}
			remember(t, f, `{"text":"birds sing","ref":"c"}`)
			complete(t, p.vectors)
			if err := p.Complete(t.Context()); err == nil {
				t.Error("it was sent to a server that is of no use")
			} else if strings.Contains(err.Error(), "hunter9") || !strings.Contains(err.Error(), url) {
				t.Errorf("error %q", err)
			}
			if status := p.Status(); status.Unreachable.IsZero() || !strings.Contains(status.Line(time.UTC).String(), "searching by words") {
				t.Errorf("status %+v: %s", status, status.Line(time.UTC))
			}
			if strings.Count(log.String(), "cannot be used") != 1 || strings.Contains(log.String(), "hunter9") {
				t.Errorf("the log says %q", log.String())
			}
			s.Break(nil)
			now = now.Add(shyness)
			fed(t, p)
			verified(t, p)
			if status := p.Status(); !status.Unreachable.IsZero() || status.Waiting != 0 {
				t.Errorf("afterwards %+v", status)
			}
			if got := refs(t, h, Query{Text: "birds"}); !slices.Equal(got[:1], []string{"c"}) {
				t.Errorf("afterwards it finds %q", got)
			}
			if !strings.Contains(log.String(), "can be used again") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

// TestQdrantRests: a server that failed just now is not waited for by every question.
func TestQdrantRests(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a"}`)
	s, url := stand(t)
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 300}, url)
	now := time.Now()
	p.now = func() time.Time { return now }
	fed(t, p)
	h := OpenQdrant(f, p)
	s.Break(standin.Refuse(500))
	asked := func() int {
		return len(slices.DeleteFunc(s.Calls(), func(c string) bool { return !strings.HasSuffix(c, "/query") }))
	}
	for range 5 {
		refs(t, h, Query{Text: "cats"})
	}
	if n := asked(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	now = now.Add(shyness)
	s.Break(nil)
	refs(t, h, Query{Text: "cats"})
	if n := asked(); n != 2 {
		t.Errorf("it was asked %d times after a rest", n)
	}
}

// TestQdrantLoses: a collection that was lost or emptied is filled again by itself.
func TestQdrantLoses(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, s *standin.Server, url string){
		"collection": func(_ *testing.T, s *standin.Server, _ string) { s.Drop("mem_words_300") },
		"points": func(t *testing.T, s *standin.Server, url string) {
			for id := range s.Points("mem_words_300") {
				noError(t, newQdrant(url, "hunter9").remove(t.Context(), "mem_words_300", []string{id}))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := openIndex(t)
			remember(t, f, `{"text":"cats purr","ref":"a"}`, `{"text":"dogs bark","ref":"b"}`)
			s, url := stand(t)
			p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 300}, url)
			now := time.Now()
			p.now = func() time.Time { return now }
			fed(t, p)
			h := OpenQdrant(f, p)
			lose(t, s, url)
			if got := refs(t, h, Query{Text: "cats"}); !slices.Equal(got, []string{"a"}) {
				t.Errorf("meanwhile it finds %q", got)
			}
			now = now.Add(max(shyness, readEvery))
			fed(t, p)
			verified(t, p)
			if near, err := p.nearest(t.Context(), p.vectors.Question(t.Context(), "dogs bark"), inScope(Shared), 1); err != nil || len(near) != 1 || near[0].Cosine < .99 {
				t.Errorf("afterwards the server finds %v, %v", near, err)
			}
			if got := onServer(t, s, f.db); !slices.Equal(got, []string{"cats purr", "dogs bark"}) {
				t.Errorf("the server holds %q", got)
			}
		})
	}
}

// TestStrangersCollection: a collection that this bot did not make is left alone.
func TestStrangersCollection(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a"}`)
	s, url := stand(t)
	noError(t, newQdrant(url, "hunter9").create(t.Context(), "mem_words_300", 4))
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 300}, url)
	complete(t, p.vectors)
	if err := p.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), "memory.qdrant.collection") {
		t.Errorf("error %v", err)
	}
	if err := p.Rebuild(t.Context(), nil); err == nil {
		t.Error("it was made anew")
	}
	if info, err := newQdrant(url, "hunter9").collection(t.Context(), "mem_words_300"); err != nil || info.Config.Params.Vectors.Size != 4 {
		t.Errorf("it is now %+v, %v", info, err)
	}
	if names := s.Collections(); len(names) != 1 {
		t.Errorf("%v", names)
	}
}

// TestComparing: what is on the server and should not be goes, what changed or is
// missing comes, over as many pages as there are.
func TestComparing(t *testing.T) {
	t.Parallel()
	f := openIndex(t)
	var lines []string
	for i := range scrollAtOnce + 500 {
		lines = append(lines, fmt.Sprintf(`{"text":"fact number%d","ref":"r%d"}`, i, i))
	}
	remember(t, f, lines...)
	s, url := stand(t)
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 8}, url)
	fed(t, p)
	verified(t, p)
	var ids []string
	for id := range s.Points("mem_words_8") {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	noError(t, p.server.remove(t.Context(), "mem_words_8", ids[len(ids)-3:]))
	one := s.Points("mem_words_8")[ids[0]].Payload
	one["rev"], one["state"] = 7., "archived"
	s.Put("mem_words_8", ids[0], make([]float64, 8), one)
	s.Put("mem_words_8", pointID("mem_nobody"), make([]float64, 8), map[string]any{"entry": "mem_nobody"})
	s.Put("mem_words_8", pointID("x"), make([]float64, 8), map[string]any{"title": "a film", "rev": "one"})
	if changed, needless := pointFaults(t, p); changed != 4 || needless != 2 {
		t.Errorf("%d, %d", changed, needless)
	}
	before := len(s.Calls())
	fed(t, p)
	if len(s.Calls()) != before {
		t.Error("it is read again at once")
	}
	p.now = func() time.Time { return time.Now().Add(readEvery) }
	fed(t, p)
	verified(t, p)
}

// TestQdrantModelChanges: another model's vectors get a collection of their own, and the old
// one goes; a collection with another name stays.
func TestQdrantModelChanges(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, url := stand(t)
	store := openAt(t, dir)
	for i := range 5 {
		noted(t, store, Shared, fmt.Sprintf("cat number%d", i), owner)
	}
	others := []string{"mem", "mem_old_100_x", "mem_x_old_100", "memory_old_100"}
	for _, name := range others {
		noError(t, newQdrant(url, "hunter9").create(ctx, name, 3))
	}
	old := openPoints(t, store.db, &wordEmbedder{name: "old", dim: 100}, url)
	fed(t, old)
	if n, err := old.Probe(ctx); err != nil || n != 5 {
		t.Errorf("it holds %d points, %v", n, err)
	}
	p := openPoints(t, store.db, &wordEmbedder{name: "new/model", dim: 200}, url)
	name := collectionName("mem", "new/model", 200)
	must(p.vectors.step(ctx, 2))(t)
	noError(t, p.Complete(ctx))
	if got, want := s.Collections(), slices.Sorted(slices.Values(append(others, name))); !slices.Equal(got, want) || len(s.Points(name)) != 2 {
		t.Errorf("collections %v, want %v; %d points", got, want, len(s.Points(name)))
	}
	fed(t, p)
	verified(t, p)
	if near, err := p.nearest(ctx, p.vectors.Question(ctx, "cat number3"), inScope(Shared), 1); err != nil || len(near) != 1 || near[0].Cosine < .99 {
		t.Errorf("found %v, %v", near, err)
	}
}
