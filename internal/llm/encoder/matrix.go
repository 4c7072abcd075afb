package encoder

// matrix holds a layer's weights in int8. The real weights are weights × scale of their column (of
// their row, for embeddings).
type matrix struct {
	rows, columns int
	weights       []byte // int8, row by row
	scale         []float32
	bias          []float32 // of each column
}

// signed maps a byte to its int8 value as float32. A lookup is faster than a conversion.
var signed = func() (table [256]float32) {
	for i := range table {
		table[i] = float32(int8(i))
	}
	return table
}()

const (
	tile  = 128 // columns per block, so that they stay in the L1 cache; also in matrix_amd64.s
	depth = 8   // rows of weights converted to float32 at once, for all tokens; also in matrix_amd64.s
)

// multiply returns x × m + bias for all rows of x, on two processors. Rows are a multiple of depth and
// columns of 2 × tile.
func (m *matrix) multiply(x []float32) []float32 {
	out := make([]float32, len(x)/m.rows*m.columns)
	inHalves(m.columns/tile, func(from, to int) {
		for ; from < to; from++ {
			m.multiplyTile(x, out, from*tile)
		}
	})
	return out
}

// multiplyTile computes one block of columns at a time, starting at from.
func (m *matrix) multiplyTile(x, out []float32, from int) {
	tokens := len(x) / m.rows
	var w [depth][tile]float32
	for row := 0; row < m.rows; row += depth {
		for i := range w {
			widen(&w[i], (*[tile]byte)(m.weights[(row+i)*m.columns+from:]))
		}
		for t := range tokens {
			addRows((*[tile]float32)(out[t*m.columns+from:]), (*[depth]float32)(x[t*m.rows+row:]), &w)
		}
	}
	scale, bias := (*[tile]float32)(m.scale[from:]), (*[tile]float32)(m.bias[from:])
	for t := range tokens {
		sum := (*[tile]float32)(out[t*m.columns+from:])
		for i := range sum {
			sum[i] = sum[i]*scale[i] + bias[i]
		}
	}
}

// widen converts int8 weights, from -127 to 127, into float32 without their scale.
func widen(into *[tile]float32, weights *[tile]byte) {
	if vectorized {
		widenAVX2(into, weights)
		return
	}
	widenGo(into, weights)
}

func widenGo(into *[tile]float32, weights *[tile]byte) {
	for c, b := range weights {
		into[c] = signed[b]
	}
}

// addRows adds in × w to sum: one token's numbers times some rows of weights. It takes almost all
// of the encoder's time.
func addRows(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32) {
	if vectorized {
		addRowsAVX2(sum, in, w)
		return
	}
	addRowsGo(sum, in, w)
}

// addRowsGo is addRows in Go. It loops over arrays of fixed size, so that the compiler drops bounds
// checks.
func addRowsGo(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32) {
	a, b, c, d, e, f, g, h := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]
	for i := range sum {
		sum[i] += (a*w[0][i] + b*w[1][i] + c*w[2][i] + d*w[3][i]) + (e*w[4][i] + f*w[5][i] + g*w[6][i] + h*w[7][i])
	}
}

// dot returns the product of two rows of equal length, a multiple of 4. Four sums avoid waiting for
// each addition.
func dot(a, b []float32) float32 {
	var s, t, u, v float32
	b = b[:len(a)]
	for i := 0; i+4 <= len(a); i += 4 {
		s += a[i] * b[i]
		t += a[i+1] * b[i+1]
		u += a[i+2] * b[i+2]
		v += a[i+3] * b[i+3]
	}
	return (s + t) + (u + v)
}
