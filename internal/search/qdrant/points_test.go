package qdrant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/search/qdrant/standin"
	"reverie/internal/search/searchtest"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
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
func openPoints(t testing.TB, db *store.DB, e vector.Embedder, url string) *Points {
	t.Helper()
	return openPointsWith(t, db, e, Config{URL: url, Key: "hunter9"})
}

func openPointsWith(t testing.TB, db *store.DB, e vector.Embedder, c Config) *Points {
	t.Helper()
	v := expect.Must(vector.Open(t.Context(), vector.Config{DB: db, Embedder: e, Patience: time.Minute}))(t)
	c.Vectors, c.Collection = v, "mem"
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	return Open(c)
}

// fed sends all there is.
func fed(t testing.TB, p *Points) {
	t.Helper()
	expect.OK(t, p.vectors.Complete(t.Context()))
	expect.OK(t, p.Complete(t.Context()))
}

// pointFaults counts the memories that the server does not hold as they are, and the points that belong to no memory.
func pointFaults(t testing.TB, p *Points) (changed, needless int) {
	t.Helper()
	space := p.vectors.Space()
	if space.No == 0 {
		return 0, 0
	}
	p.suspect.Store(true)
	expect.OK(t, p.prepareCollection(t.Context(), p.collection(space.Dim), space.Dim))
	gone, other, err := p.differences(t.Context(), space)
	expect.OK(t, err)
	return len(other), len(gone)
}

func verified(t testing.TB, p *Points) {
	t.Helper()
	if changed, needless := pointFaults(t, p); changed+needless > 0 {
		t.Errorf("on the server %d memories are not as they are, and %d points belong to none", changed, needless)
	}
}

// words300 is the collection of most tests.
var words300 = collectionName("mem", "words/i", 300)

// everybody looks for what all may read.
var everybody = vector.Filter{Scopes: []trust.Readers{trust.Everybody}}

// TestPointID: ids are UUIDs and stay what they are.
func TestPointID(t *testing.T) {
	expect.Equal(t, pointID("mem_000000000001"), "69550910-c5b7-5b4a-a14f-2f3b39636bdd", "an entry's id on the server is now ; all that is there would be sent again")
}

// TestQdrantOutage: while the server is of no use, in whatever way, it is told so, and
// afterwards everything is there.
func TestQdrantOutage(t *testing.T) {
	t.Parallel()
	dim := 300
	faults := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"500": standin.Refuse(500), "503": standin.Refuse(503), "401": standin.Refuse(401),
		"slow": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice the cancellation
			<-r.Context().Done()
			return true
		},
		"cut off":  func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, "<html>"); return true },
		"too long": func(w http.ResponseWriter, _ *http.Request) bool { w.Write(make([]byte, maxResponse+2)); return true },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			db := searchtest.DB(t, t.TempDir())
			n := searchtest.Enter(t, db, searchtest.Doc{Text: "cats purr"}, searchtest.Doc{Text: "dogs bark at cats"})
			s, url := stand(t)
			var log strings.Builder
			p := openPointsWith(t, db, &searchtest.Embedder{Model: "words", Dim: dim},
				Config{URL: url, Key: "hunter9", Patience: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
			now := time.Now()
			p.now = func() time.Time { return now }
			p.server.http.Timeout = time.Second // for feeding; nothing is measured by it
			fed(t, p)
			s.Break(fault)
			find := func(said string) ([]vector.Similarity, error) {
				return p.Nearest(t.Context(), p.vectors.EmbedQuery(t.Context(), said), everybody, 1)
			}
			calls := len(s.Calls())
			for range 3 { // it is waited for once
				if found, err := find("do cats purr?"); !errors.Is(err, vector.ErrUnavailable) {
					t.Errorf("found %v, %v", found, err)
				}
			}
			expect.Equal(t, len(s.Calls())-calls, 1, "it was asked times")
			n = append(n, searchtest.Enter(t, db, searchtest.Doc{Text: "birds sing"})...)
			expect.OK(t, p.vectors.Complete(t.Context()))
			if err := p.Complete(t.Context()); err == nil {
				t.Error("it was sent to a server that is of no use")
			} else if strings.Contains(err.Error(), "hunter9") || !strings.Contains(err.Error(), url) {
				t.Errorf("error %q", err)
			}
			expect.Has(t, p.Line(time.UTC).String(), "searching by words")
			if strings.Count(log.String(), "cannot be used") != 1 || strings.Contains(log.String(), "hunter9") {
				t.Errorf("the log says %q", log.String())
			}
			s.Break(nil)
			now = now.Add(time.Minute)
			fed(t, p)
			verified(t, p)
			expect.Equal(t, p.Line(time.UTC).String(), "qdrant: in use", "afterwards")
			if found, err := find("birds"); err != nil || len(found) != 1 || found[0].Doc != n[2] {
				t.Errorf("afterwards it finds %v, %v", found, err)
			}
			expect.Has(t, log.String(), "can be used again")
		})
	}
}

// TestQdrantLoses: a collection that was lost is made and filled again by itself.
func TestQdrantLoses(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	searchtest.Enter(t, db, searchtest.Doc{Text: "cats purr"}, searchtest.Doc{Text: "dogs bark"})
	s, url := stand(t)
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	now := time.Now()
	p.now = func() time.Time { return now }
	fed(t, p)
	s.Drop(words300)
	if _, err := p.Nearest(t.Context(), p.vectors.EmbedQuery(t.Context(), "cats"), everybody, 1); !errors.Is(err, vector.ErrUnavailable) {
		t.Errorf("meanwhile: %v", err)
	}
	fed(t, p)
	verified(t, p)
	now = now.Add(time.Minute)
	if near, err := p.Nearest(t.Context(), p.vectors.EmbedQuery(t.Context(), "dogs bark"), everybody, 1); err != nil || len(near) != 1 || near[0].Cosine < .99 {
		t.Errorf("afterwards the server finds %v, %v", near, err)
	}
}

// TestComparing: what is on the server and should not be goes, what changed or is
// missing comes, over as many pages as there are.
func TestComparing(t *testing.T) {
	t.Parallel()
	db, name := searchtest.DB(t, t.TempDir()), collectionName("mem", "words/i", 8)
	var all []searchtest.Doc
	for i := range scrollBatch + 500 {
		all = append(all, searchtest.Doc{Text: fmt.Sprint("fact number", i)})
	}
	searchtest.Enter(t, db, all...)
	s, url := stand(t)
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 8}, url)
	fed(t, p)
	verified(t, p)
	var ids []string
	for id := range s.Points(name) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	expect.OK(t, p.server.remove(t.Context(), name, ids[len(ids)-3:]))
	one := s.Points(name)[ids[0]].Payload
	one["rev"], one["state"] = 7., "archived"
	s.Put(name, ids[0], make([]float64, 8), one)
	s.Put(name, pointID("mem_nobody"), make([]float64, 8), map[string]any{"entry": "mem_nobody"})
	s.Put(name, pointID("x"), make([]float64, 8), map[string]any{"title": "a film"})
	if changed, needless := pointFaults(t, p); changed != 4 || needless != 2 {
		t.Errorf("%d, %d", changed, needless)
	}
	p.now = func() time.Time { return time.Now().Add(refreshInterval) }
	fed(t, p)
	verified(t, p)
}

// TestQdrantModelChanges: another model's vectors get a collection of their own, and the old
// one goes; a collection with another name stays.
func TestQdrantModelChanges(t *testing.T) {
	ctx := t.Context()
	s, url := stand(t)
	db := searchtest.DB(t, t.TempDir())
	for i := range 5 {
		searchtest.Enter(t, db, searchtest.Doc{Text: fmt.Sprint("cat number", i)})
	}
	others := []string{"mem", "mem_old_100_x", "mem_x_old_100", "memory_old_100"}
	for _, name := range others {
		expect.OK(t, newClient(url, "hunter9").create(ctx, name, 3))
	}
	old := openPoints(t, db, &searchtest.Embedder{Model: "old", Dim: 100}, url)
	fed(t, old)
	expect.OK(t, old.Probe(ctx))
	e := &searchtest.Embedder{Model: "new/model", Dim: 200, Refuses: "number0"}
	p := openPoints(t, db, e, url)
	name := collectionName("mem", "new/model/i", 200)
	fed(t, p) // all but one
	if got, want := s.Collections(), slices.Sorted(slices.Values(append(others, name))); !slices.Equal(got, want) || len(s.Points(name)) != 4 {
		t.Errorf("collections %v, want %v; %d points", got, want, len(s.Points(name)))
	}
	e.Set(func(e *searchtest.Embedder) { e.Refuses = "" })
	expect.OK(t, p.vectors.Rebuild(ctx))
	fed(t, p)
	verified(t, p)
	if near, err := p.Nearest(ctx, p.vectors.EmbedQuery(ctx, "cat number3"), everybody, 1); err != nil || len(near) != 1 || near[0].Cosine < .99 {
		t.Errorf("found %v, %v", near, err)
	}
}

// TestServerFilters: points of other scopes or states do not displace results.
func TestServerFilters(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	var all []searchtest.Doc
	for i := range 20 {
		said := fmt.Sprintf("cats %d", i)
		all = append(all, searchtest.Doc{Scope: trust.PersonReaders("@b:x"), Text: said}, searchtest.Doc{Scope: trust.RoomReaders("!r:x"), Text: said, State: "archived"})
	}
	n := searchtest.Enter(t, db, append(all, searchtest.Doc{Scope: trust.RoomReaders("!r:x"), Text: "cats and many other animals"})...)
	_, url := stand(t)
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	fed(t, p)
	w := vector.Filter{Scopes: []trust.Readers{trust.RoomReaders("!r:x"), trust.Everybody}}
	near, err := p.Nearest(t.Context(), p.vectors.EmbedQuery(t.Context(), "cats"), w, 5)
	expect.False(t, err != nil || len(near) != 1 || near[0].Doc != n[len(n)-1], "found %v, %v", near, err)
}

// TestBesideIsNear: what stands between two that are near is found, though the server
// sees no likeness.
func TestBesideIsNear(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	n := searchtest.Enter(t, db, searchtest.Doc{Text: "cats", Conversation: "c", Seq: 1}, searchtest.Doc{Text: "yes", Conversation: "c", Seq: 2},
		searchtest.Doc{Text: "cats", Conversation: "c", Seq: 3},
		searchtest.Doc{Text: "cats a b c d e f g h i j k l m n o p", Conversation: "other", Seq: 2})
	_, url := stand(t)
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 300}, url)
	fed(t, p)
	near, err := p.Nearest(t.Context(), p.vectors.EmbedQuery(t.Context(), "cats"), everybody, 3)
	if err != nil || len(near) != 3 || near[2].Doc != n[1] {
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
	_, err := newClient(url, "hunter9").collections(t.Context())
	if asked || err == nil || !strings.Contains(err.Error(), "HTTP 30") {
		t.Errorf("asked elsewhere: %v; %v", asked, err)
	}
}

// TestPointsRun: what was away is brought up to date by itself, and a run ends when
// it is told to.
func TestPointsRun(t *testing.T) {
	db := searchtest.DB(t, t.TempDir())
	searchtest.Enter(t, db, searchtest.Doc{Text: "cats purr"})
	s, url := stand(t)
	p := openPoints(t, db, &searchtest.Embedder{Model: "words", Dim: 30}, url)
	expect.OK(t, p.vectors.Complete(t.Context()))
	s.Break(standin.Refuse(500))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	patient(t, "the outage is noticed", func() bool { p.Wake(); return strings.Contains(p.Line(time.UTC).String(), "unavailable since") })
	s.Break(nil)
	patient(t, "all is sent", func() bool { p.Wake(); return len(s.Points(collectionName("mem", "words/i", 30))) == 1 })
	stop()
	wg.Wait()
}

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
