package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory/standin"
)

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
		for id, point := range s.Points("mem_words_300") {
			point.Payload["scope"], point.Payload["state"] = scope, "active"
			points = append(points, map[string]any{"id": id, "score": 1, "payload": point.Payload})
		}
		points = append(points, map[string]any{"id": 7, "payload": map[string]any{"entry": 7}}, map[string]any{"id": pointID("x"), "payload": map[string]any{"entry": "x", "scope": scope}}, map[string]any{})
		s.Break(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/query") {
				return false
			}
			json.NewEncoder(w).Encode(map[string]any{"result": map[string]any{"points": points}})
			return true
		})
	}
	if len(s.Points("mem_words_300")) != 5 {
		t.Fatalf("the server holds %v", s.Points("mem_words_300"))
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
			if scope == "private:@b:x" {
				tt.want = nil // the points say themselves that they are another's
			}
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
	if got := search(t, store, "code 4711", Private(owner)); len(got) != 0 {
		t.Errorf("forgotten, and found: %q", got)
	}
	if got := onServer(t, s, p.db); !slices.Equal(got, []string{"", "we keep bees"}) {
		t.Fatalf("the server holds %q", got)
	}
	fed(t, p)
	if got := onServer(t, s, p.db); !slices.Equal(got, []string{"and cats", "we keep bees"}) {
		t.Errorf("the server holds %q", got)
	}
	verified(t, p)
	away := must(OpenPoints(PointsConfig{DB: vectorDB(t, dir), URL: url, Key: "hunter9", Collection: "mem"}))(t)
	store.points = away
	must(store.Forget(ctx, me, kept.ID))(t)
	if got := onServer(t, s, p.db); !slices.Equal(got, []string{"and cats"}) {
		t.Errorf("the server holds %q", got)
	}
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
	other := must(OpenPoints(PointsConfig{DB: vectorDB(t, dir), URL: url, Key: "hunter9", Collection: "mem"}))(t)
	s.Break(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/points") {
			s.Break(nil)
			must(store.Forget(context.Background(), everything, gone.ID))(t)
			other.leave(context.Background(), []string{gone.ID})
		}
		return false
	})
	fed(t, p)
	if got := onServer(t, s, store.db); !slices.Equal(got, []string{"we keep bees"}) {
		t.Errorf("the server holds %q", got)
	}
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
	if err != nil || len(near) != 1 || near[0].N != n[len(n)-1] {
		t.Errorf("found %v, %v", near, err)
	}
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
