package memory

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// randomEmbedder gives vectors around some centres, whatever the texts.
type randomEmbedder struct {
	r   *rand.Rand
	dim int
}

func (e *randomEmbedder) Name() string { return "random" }

func (e *randomEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = randomVector(e.r, e.dim)
	}
	return out, nil
}

// BenchmarkVectors measures the nearest 100 among entries in conversations of 50,
// and how long and how much memory it takes to read them at the start.
func BenchmarkVectors(b *testing.B) {
	for _, size := range []struct{ n, dim int }{{10_000, 384}, {10_000, 512}, {20_000, 512}} {
		b.Run(fmt.Sprintf("%dx%d", size.n, size.dim), func(b *testing.B) {
			db := vectorDB(b, b.TempDir())
			e := &randomEmbedder{rand.New(rand.NewPCG(1, 1)), size.dim}
			fillVectors(b, db, e, size.n)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			begin := time.Now()
			v := openVectors(b, db, e)
			if err := v.open(b.Context(), []Scope{Shared}); err != nil {
				b.Fatal(err)
			}
			opened := time.Since(begin)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if s := v.Status(b.Context()); s.Done != size.n {
				b.Fatalf("status %+v", s)
			}
			var took []time.Duration
			for b.Loop() {
				q := randomVector(e.r, size.dim)
				begin := time.Now()
				if found, err := v.nearest(b.Context(), q, inScope(Shared), 100); err != nil || len(found) != 100 {
					b.Fatal(len(found), err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(opened.Milliseconds()), "open-ms")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		})
	}
}

// fill stores n entries and their vectors the short way.
func fillVectors(b *testing.B, db *sql.DB, e *randomEmbedder, n int) {
	b.Helper()
	var all []Entry
	for i := range n {
		all = append(all, Entry{Text: fmt.Sprint("fact ", i), Conversation: fmt.Sprint("talk ", i/50), Seq: i})
	}
	for part := range slices.Chunk(all, 5000) {
		entered(b, db, part...)
	}
	complete(b, openVectors(b, db, e))
}
