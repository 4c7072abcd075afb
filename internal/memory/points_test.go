package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	return OpenPoints(c)
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
	p.suspect.Store(true)
	noError(t, p.refresh(t.Context(), p.collection(dim), dim))
	gone, other, err := p.differences(t.Context(), space)
	noError(t, err)
	return len(other), len(gone)
}

func verified(t testing.TB, p *Points) {
	t.Helper()
	if changed, needless := pointFaults(t, p); changed+needless > 0 {
		t.Errorf("on the server %d memories are not as they are, and %d points belong to none", changed, needless)
	}
}

// words300 is the collection of most tests.
var words300 = collectionName("mem", "words", 300)

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

// TestPointID: ids are UUIDs and stay what they are.
func TestPointID(t *testing.T) {
	equal(t, "an entry's id on the server is now ; all that is there would be sent again", pointID("mem_000000000001"), "69550910-c5b7-5b4a-a14f-2f3b39636bdd")
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
	same(t, "collections", s.Collections(), []string{words300})
	equal(t, "indexes", fmt.Sprint(s.Indexes(words300)), "map[at:integer scope:keyword state:keyword]")
	noted(t, store, Shared, "...", owner) // has no vector
	room := noted(t, store, Room(room), "dogs bark", owner)
	new := must(store.Supersede(ctx, me, old.ID, "cats bite"))(t)
	complete(t, p.vectors)
	if changed, _ := pointFaults(t, p); changed != 3 {
		t.Errorf("%d entries are to be sent", changed)
	}
	fed(t, p)
	verified(t, p)
	for id, want := range map[string]pointPayload{
		old.ID:  {old.ID, 2, Private(owner), Superseded, old.ObservedAt.UnixMilli()},
		new.ID:  {new.ID, 1, Private(owner), Active, new.ObservedAt.UnixMilli()},
		room.ID: {room.ID, 1, room.Scope, Active, room.ObservedAt.UnixMilli()},
	} {
		got, _ := json.Marshal(s.Points(words300)[pointID(id)].Payload)
		var have pointPayload
		if err := json.Unmarshal(got, &have); err != nil || have != want {
			t.Errorf("the server has %s, want %+v", got, want)
		}
		equal(t, fmt.Sprintf("the server is told more: %s", got), len(s.Points(words300)[pointID(id)].Payload), 5)
	}
	before := len(s.Calls())
	fed(t, p)
	sized(t, "nothing changed, and the server is asked", s.Calls()[before:], 0)
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
	never(t, differ > 0, "%d of %d answers differ", differ, len(set.Questions)/6)
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
			calls := len(s.Calls())
			for range 3 { // it is waited for once
				got := must(h.Search(t.Context(), q))(t)
				words := must(f.Search(t.Context(), q))(t)
				equal(t, fmt.Sprintf("found %v, words alone find", got), fmt.Sprint(got), fmt.Sprint(words))
			}
			equal(t, "it was asked times", len(s.Calls())-calls, 1)
			remember(t, f, `{"text":"birds sing","ref":"c"}`)
			complete(t, p.vectors)
			if err := p.Complete(t.Context()); err == nil {
				t.Error("it was sent to a server that is of no use")
			} else if strings.Contains(err.Error(), "hunter9") || !strings.Contains(err.Error(), url) {
				t.Errorf("error %q", err)
			}
			has(t, "status", p.Line(time.UTC).String(), "searching by words")
			if strings.Count(log.String(), "cannot be used") != 1 || strings.Contains(log.String(), "hunter9") {
				t.Errorf("the log says %q", log.String())
			}
			s.Break(nil)
			now = now.Add(shyness)
			fed(t, p)
			verified(t, p)
			equal(t, "afterwards", p.Line(time.UTC).String(), "qdrant: in use")
			same(t, "afterwards it finds", refs(t, h, Query{Text: "birds"})[:1], []string{"c"})
			has(t, "the log says", log.String(), "can be used again")
		})
	}
}

// TestQdrantLoses: a collection that was lost is made and filled again by itself.
func TestQdrantLoses(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a"}`, `{"text":"dogs bark","ref":"b"}`)
	s, url := stand(t)
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 300}, url)
	now := time.Now()
	p.now = func() time.Time { return now }
	fed(t, p)
	s.Drop(words300)
	want(t, "meanwhile", refs(t, OpenQdrant(f, p), Query{Text: "cats"}), "a")
	fed(t, p)
	verified(t, p)
	now = now.Add(shyness)
	if near, err := p.nearest(t.Context(), p.vectors.Question(t.Context(), "dogs bark"), inScope(Shared), 1); err != nil || len(near) != 1 || near[0].Cosine < .99 {
		t.Errorf("afterwards the server finds %v, %v", near, err)
	}
}

// TestComparing: what is on the server and should not be goes, what changed or is
// missing comes, over as many pages as there are.
func TestComparing(t *testing.T) {
	t.Parallel()
	f, name := openIndex(t), collectionName("mem", "words", 8)
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
	for id := range s.Points(name) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	noError(t, p.server.remove(t.Context(), name, ids[len(ids)-3:]))
	one := s.Points(name)[ids[0]].Payload
	one["rev"], one["state"] = 7., "archived"
	s.Put(name, ids[0], make([]float64, 8), one)
	s.Put(name, pointID("mem_nobody"), make([]float64, 8), map[string]any{"entry": "mem_nobody"})
	s.Put(name, pointID("x"), make([]float64, 8), map[string]any{"title": "a film"})
	if changed, needless := pointFaults(t, p); changed != 4 || needless != 2 {
		t.Errorf("%d, %d", changed, needless)
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
	noError(t, old.Probe(ctx))
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

// TestLyingServer: whatever the server says, nothing of another scope or state is shown.
func TestLyingServer(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"apple pie","ref":"mine","scope":"private:@a:x"}`, `{"text":"apple cake","ref":"theirs","scope":"private:@b:x"}`,
		`{"text":"apple juice","ref":"past","scope":"private:@a:x"}`, `{"text":"apple tart","ref":"gone","scope":"private:@a:x"}`, `{"text":"apple jam","ref":"early","scope":"private:@a:x","observed_at":"2020-01-01"}`)
	alter(t, f, `state = 'superseded'`, "past")
	var gone string
	noError(t, f.db.QueryRow(`SELECT id FROM memory WHERE ref = 'gone'`).Scan(&gone))
	s, url := stand(t)
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 300}, url)
	fed(t, p)
	alter(t, f, `text = '', hash = '', ref = '', state = 'forgotten'`, "gone") // and the server was not told
	h := OpenQdrant(f, p)
	lies := func(scope any) {
		var points []map[string]any
		for id, point := range s.Points(words300) {
			point.Payload["scope"], point.Payload["state"] = scope, "active"
			points = append(points, map[string]any{"id": id, "score": 1, "payload": point.Payload})
		}
		points = append(points, map[string]any{"id": pointID("x"), "payload": map[string]any{"entry": "x", "scope": scope}}, map[string]any{})
		s.Break(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/query") {
				return false
			}
			json.NewEncoder(w).Encode(map[string]any{"result": map[string]any{"points": points}})
			return true
		})
	}
	if len(s.Points(words300)) != 5 {
		t.Fatalf("the server holds %v", s.Points(words300))
	}
	day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, scope := range []any{"private:@a:x", "private:@b:x"} {
		lies(scope)
		for name, tt := range map[string]struct {
			q    Query
			w    wanted
			want []string
		}{
			"mine":    {Query{Text: "apple", After: day}, wanted{after: day}, []string{"mine"}},
			"always":  {Query{Text: "apple"}, wanted{}, []string{"early", "mine"}},
			"earlier": {Query{Text: "apple", Before: day}, wanted{before: day}, []string{"early"}},
			"past":    {Query{Text: "apple", Past: true, After: day}, wanted{past: true, after: day}, []string{"mine", "past"}},
		} {
			tt.q.Scopes, tt.w.scopes = []Scope{"private:@a:x"}, []Scope{"private:@a:x"}
			got := refs(t, h, tt.q)
			slices.Sort(got)
			want(t, fmt.Sprint(scope, ", ", name), got, tt.want...)
			// Nor do they get as far as the full-text index, which would decide.
			near := must(p.nearest(t.Context(), p.vectors.Question(t.Context(), "apple"), tt.w, 100))(t)
			var there []string
			for _, l := range near {
				var ref string
				noError(t, f.db.QueryRow(`SELECT ref FROM memory WHERE n = ?`, l.N).Scan(&ref))
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
	p := openPoints(t, openAt(t, dir).db, &wordEmbedder{name: "words", dim: 300}, url)
	store := openWith(t, Config{DB: p.db, Dir: dir, Owner: owner, Backend: Qdrant, Points: p})
	me := as(owner)
	gone, kept := noted(t, store, Private(owner), "the code is 4711", owner), noted(t, store, Private(owner), "we keep bees", owner)
	fed(t, p)
	if got := onServer(t, s, p.db); len(got) != 2 {
		t.Fatalf("the server holds %q", got)
	}
	s.Break(standin.Refuse(503))
	must(store.Forget(ctx, me, gone.ID))(t)
	noted(t, store, Private(owner), "and cats", owner)
	complete(t, p.vectors)
	s.Break(nil)
	sized(t, "forgotten, and found", search(t, store, "code 4711", Private(owner)), 0)
	if got := onServer(t, s, p.db); !slices.Equal(got, []string{"", "we keep bees"}) {
		t.Fatalf("the server holds %q", got)
	}
	fed(t, p)
	same(t, "the server holds", onServer(t, s, p.db), []string{"and cats", "we keep bees"})
	verified(t, p)
	away := OpenPoints(PointsConfig{DB: vectorDB(t, dir), URL: url, Key: "hunter9", Collection: "mem"})
	store.points = away
	must(store.Forget(ctx, me, kept.ID))(t)
	same(t, "the server holds", onServer(t, s, p.db), []string{"and cats"})
}

// TestForgottenWhileSent: what is forgotten by another process while it is on its
// way to the server does not stay there.
func TestForgottenWhileSent(t *testing.T) {
	dir := t.TempDir()
	s, url := stand(t)
	store := openAt(t, dir)
	p := openPoints(t, store.db, &wordEmbedder{name: "words", dim: 300}, url)
	noted(t, store, Shared, "we keep bees", owner)
	fed(t, p)
	gone := noted(t, store, Shared, "the code is 4711", owner)
	complete(t, p.vectors)
	other := OpenPoints(PointsConfig{DB: vectorDB(t, dir), URL: url, Key: "hunter9", Collection: "mem"})
	s.Break(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/points") {
			s.Break(nil)
			must(store.Forget(context.Background(), everything, gone.ID))(t)
			other.leave(context.Background(), []string{gone.ID})
		}
		return false
	})
	fed(t, p)
	same(t, "the server holds", onServer(t, s, store.db), []string{"we keep bees"})
	verified(t, p)
}

// TestServerFilters: what is somebody else's, past or of another time does not take the
// places of what is asked for.
func TestServerFilters(t *testing.T) {
	db := vectorDB(t, t.TempDir())
	var all []Entry
	for i := range 20 {
		all = append(all, Entry{Scope: Private("@b:x"), Text: fmt.Sprintf("cats %d", i)}, Entry{Scope: Room("!r:x"), Text: fmt.Sprintf("cats %d", i), State: Archived},
			Entry{Scope: Room("!r:x"), Text: fmt.Sprintf("cats %d", i), ObservedAt: firstDay.AddDate(-1, 0, 0)}, Entry{Scope: Room("!r:x"), Text: fmt.Sprintf("cats %d", i), ObservedAt: firstDay.AddDate(1, 0, 0)})
	}
	n := entered(t, db, append(all, Entry{Scope: Room("!r:x"), Text: "cats and many other animals"})...)
	_, url := stand(t)
	p := openPoints(t, db, &wordEmbedder{name: "words", dim: 300}, url)
	fed(t, p)
	w := wanted{scopes: []Scope{Room("!r:x"), Shared}, after: firstDay, before: firstDay.AddDate(0, 0, 1)}
	near, err := p.nearest(t.Context(), p.vectors.Question(t.Context(), "cats"), w, 5)
	never(t, err != nil || len(near) != 1 || near[0].N != n[len(n)-1], "found %v, %v", near, err)
}

// TestBesideIsNear: what stands between two that are near is found, though the server
// sees no likeness.
func TestBesideIsNear(t *testing.T) {
	db := vectorDB(t, t.TempDir())
	n := entered(t, db, Entry{Text: "cats", Conversation: "c", Seq: 1}, Entry{Text: "yes", Conversation: "c", Seq: 2}, Entry{Text: "cats", Conversation: "c", Seq: 3},
		Entry{Text: "cats a b c d e f g h i j k l m n o p", Conversation: "other", Seq: 2})
	_, url := stand(t)
	p := openPoints(t, db, &wordEmbedder{name: "words", dim: 300}, url)
	fed(t, p)
	near, err := p.nearest(t.Context(), p.vectors.Question(t.Context(), "cats"), inScope(Shared), 3)
	if err != nil || len(near) != 3 || near[2].N != n[1] {
		t.Errorf("found %v, %v; want %v", near, err, n[:3])
	}
}

// TestKeyStays: a server that sends elsewhere does not get the key carried there.
func TestKeyStays(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	s, url := stand(t)
	s.Break(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		return true
	})
	_, err := newQdrant(url, "hunter9").collections(t.Context())
	if asked || err == nil || !strings.Contains(err.Error(), "sends elsewhere") {
		t.Errorf("asked elsewhere: %v; %v", asked, err)
	}
}

// TestPointsRun: what was away is brought up to date by itself, and a run ends when
// it is told to.
func TestPointsRun(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a"}`)
	s, url := stand(t)
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 30}, url)
	p.nap = func(context.Context, time.Duration) { time.Sleep(time.Millisecond) }
	complete(t, p.vectors)
	s.Break(standin.Refuse(500))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	patient(t, "the outage is noticed", func() bool { return strings.Contains(p.Line(time.UTC).String(), "of no use") })
	s.Break(nil)
	patient(t, "all is sent", func() bool { return len(s.Points(collectionName("mem", "words", 30))) == 1 })
	stop()
	wg.Wait()
}

// TestRealQdrant runs against a server that is really one.
func TestRealQdrant(t *testing.T) {
	url := os.Getenv("QDRANT_URL")
	if url == "" {
		t.Skip("QDRANT_URL names no server (QDRANT_KEY its key), so Qdrant is tested against a stand-in only")
	}
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a","observed_at":"2026-01-01"}`, `{"text":"cats bite","ref":"b","scope":"private:@b:x"}`, `{"text":"cats sleep","ref":"c"}`)
	p := openPointsWith(t, f.db, &wordEmbedder{name: "words", dim: 30}, PointsConfig{URL: url, Key: os.Getenv("QDRANT_KEY")})
	p.prefix = "reverie-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	t.Cleanup(func() { _ = p.server.drop(context.Background(), p.collection(30)) })
	fed(t, p)
	verified(t, p)
	want(t, "shared", refs(t, OpenQdrant(f, p), Query{Text: "cats purr", K: 1}), "a")
	alter(t, f, `text = '', hash = '', ref = '', state = 'forgotten'`, "a")
	noError(t, p.Rebuild(t.Context()))
	verified(t, p)
	want(t, "forgotten", refs(t, OpenQdrant(f, p), Query{Text: "cats", K: 2}), "c")
}
