package vector

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"reverie/internal/llm/encoder"
	"reverie/internal/test/expect"
)

// BenchmarkNearest compares a query with all vectors of a scope, as nearest does and as chromem does.
func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 20_000} {
		c, random := expect.Must(newCollection())(b), rand.New(rand.NewPCG(1, 2))
		for i := range n {
			e := vectorEntry{n: int64(i), conversation: fmt.Sprintf("c%06d", i/40), seq: int64(i)}
			expect.OK(b, c.add(b.Context(), taken(b, e, randomVector(random, encoder.Dims))))
		}
		q := unit(randomVector(random, encoder.Dims))
		b.Run(fmt.Sprint(n, "/ours"), func(b *testing.B) {
			for b.Loop() {
				c.nearest(q, Filter{}, 100)
			}
		})
		b.Run(fmt.Sprint(n, "/chromem"), func(b *testing.B) {
			for b.Loop() {
				expect.Must(c.docs.QueryEmbedding(b.Context(), q, 100, nil, nil))(b)
			}
		})
	}
}
