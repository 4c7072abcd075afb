package memory

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/memory/standin"
)

// TestQdrantAlwaysSound: whatever is done, in whatever order, while the server comes and
// goes: in the end it holds what the entries ask for, and of what was forgotten nothing.
func TestQdrantAlwaysSound(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		server, url := stand(t)
		d := doer{t: t, rt: rt, dir: filepath.Join(dir, strconv.Itoa(runs))}
		p := openPoints(t, openAt(t, d.dir).db, &wordEmbedder{name: "words", dim: 16}, url)
		d.s = openWith(t, Config{Dir: d.dir, Owner: owner, Backend: Qdrant, Points: p})
		defer func() { _ = d.s.db.Close(); _ = p.db.Close() }()
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "server") {
			case 0:
				server.Break(standin.Refuse(500))
			case 1:
				server.Break(nil)
			case 2:
				complete(t, p.vectors)
				_ = p.Complete(t.Context()) // or not
			case 3:
				server.Drop("mem_words_16")
				p.lost.Store(true)
			}
			d.step()
		}
		server.Break(nil)
		fed(t, p)
		if changed, needless := pointFaults(t, p); changed+needless > 0 {
			rt.Fatalf("on the server %d memories are not as they are, and %d points belong to none", changed, needless)
		}
		if got := onServer(t, server, d.s.db); slices.Contains(got, "") {
			rt.Fatalf("the server holds %q", got)
		}
	})
}

// TestPointsRun: what was away is brought up to date by itself, and a run ends when
// it is told to.
func TestPointsRun(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"cats purr","ref":"a"}`)
	s, url := stand(t)
	p := openPoints(t, f.db, &wordEmbedder{name: "words", dim: 30}, url)
	p.nap = func(ctx context.Context, _ time.Duration) { _ = rest(ctx, time.Millisecond) }
	complete(t, p.vectors)
	s.Break(standin.Refuse(500))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	patient(t, "the outage is noticed", func() bool { return !p.health.well() })
	s.Break(nil)
	patient(t, "all is sent", func() bool { return len(s.Points("mem_words_30")) == 1 })
	remember(t, f, `{"text":"dogs bark","ref":"b"}`)
	complete(t, p.vectors)
	patient(t, "what is new is sent", func() bool { return len(s.Points("mem_words_30")) == 2 })
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
	t.Cleanup(func() {
		_ = p.server.drop(context.Background(), collectionName(p.prefix, "words", 30))
	})
	fed(t, p)
	verified(t, p)
	h := OpenQdrant(f, p)
	want(t, "shared", refs(t, h, Query{Text: "cats purr", K: 1}), "a")
	near, err := p.nearest(t.Context(), p.vectors.Question(t.Context(), "cats"), wanted{scopes: []Scope{Shared}, after: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}, 10)
	if err != nil || len(near) != 1 {
		t.Errorf("near %v, %v", near, err)
	}
	alter(t, f, `text = '', hash = '', ref = '', state = 'forgotten'`, "a")
	fed(t, p)
	verified(t, p)
	if n, err := p.Probe(t.Context()); err != nil || n != 2 {
		t.Errorf("%d points are left, %v", n, err)
	}
	if err := p.Rebuild(t.Context(), nil); err != nil {
		t.Error(err)
	}
	verified(t, p)
}
