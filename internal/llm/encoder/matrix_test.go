package encoder

import (
	"math"
	"math/rand/v2"
	"testing"
)

// eachPath runs a test with the Go loops, and with AVX2 where the processor has it.
// It changes a package variable, so such tests do not run in parallel.
func eachPath(t *testing.T, test func(*testing.T)) {
	was := vectorized
	defer func() { vectorized = was }()
	vectorized = false
	t.Run("Go", test)
	if vectorized = was; vectorized {
		t.Run("AVX2", test)
	}
}

// fuses reports whether the compiler joins a product and a sum without rounding
// between them. It does so on amd64 with GOAMD64=v3, and the AVX2 path never does.
//
//go:noinline
func fuses(x, y, z float32) bool { return x*y+z != float32(x*y)+z }

// TestPathsAreTheSame compares the two forms of the innermost loops, to the bit.
func TestPathsAreTheSame(t *testing.T) {
	if !vectorized {
		return // there is one path only
	}
	allowed := 0.0
	if fuses(1+1./4096, 1+1./4096, -1-1./2048) {
		allowed = 1e-4
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var (
			weights [depth][tile]byte
			w, w2   [depth][tile]float32
			in      [depth]float32
			sum     [tile]float32
		)
		for row := range weights {
			for i := range weights[row] {
				weights[row][i] = byte(random.Uint32())
			}
			weights[row][row], weights[row][tile-1-row] = 0x80, 0x7f
			in[row] = float32(random.NormFloat64())
			widenGo(&w[row], &weights[row])
			widenAVX2(&w2[row], &weights[row])
		}
		if w != w2 {
			t.Fatalf("the int8 numbers %v became %v and %v", weights, w, w2)
		}
		for i := range sum {
			sum[i] = float32(random.NormFloat64())
		}
		sum2 := sum
		addRowsGo(&sum, &in, &w)
		addRowsAVX2(&sum2, &in, &w)
		for i := range sum {
			if math.Abs(float64(sum[i])-float64(sum2[i])) > allowed {
				t.Fatalf("column %d is %v by Go and %v by AVX2", i, sum[i], sum2[i])
			}
		}
	}
}

// TestVectorsStay compares with stored vectors of the same model in seven languages,
// as people have them in their databases. They came from the Go path.
func TestVectorsStay(t *testing.T) {
	e := trained(t)
	all := readReferences(t, "testdata/golden.jsonl")
	if len(all) != 21 {
		t.Fatalf("%d texts, want 21", len(all))
	}
	eachPath(t, func(t *testing.T) {
		for _, r := range all {
			if c := cosine(encode(t, e, r.Text), r.vector()); c < 0.999999 {
				t.Errorf("%q: cosine to the stored vector %.7f", r.Text, c)
			}
		}
	})
}
