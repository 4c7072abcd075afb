package vector

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"reverie/internal/llm/encoder"
	"reverie/internal/trust"
)

// BenchmarkNearest compares a query with all vectors of a scope.
func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			vec := func() []float32 {
				v := make([]float32, encoder.Dims)
				for i := range v {
					v[i] = float32(random.NormFloat64())
				}
				code, _ := encodeVector(v)
				return decodeVector(code, len(v))
			}
			c, err := newCollection()
			if err != nil {
				b.Fatal(err)
			}
			entries := map[int64]*vectorEntry{}
			for i := range n {
				e := &vectorEntry{n: int64(i), scope: trust.Everybody, conversation: fmt.Sprintf("c%06d", i/40), seq: int64(i), vec: vec()}
				if err := c.add(b.Context(), e); err != nil {
					b.Fatal(err)
				}
				entries[e.n] = e
			}
			q := vec()
			for b.Loop() {
				if got := c.nearest(q, Filter{}, 100); len(got) != 100 {
					b.Fatalf("%d entries", len(got))
				}
			}
		})
	}
}
