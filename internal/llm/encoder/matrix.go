package encoder

// matrix is a layer's weights in int8: the true ones are weights × scale of their
// column (of their row, for embeddings).
type matrix struct {
	rows, columns int
	weights       []byte // int8, row by row
	scale         []float32
	bias          []float32 // of each column
}

// signed turns a byte that is an int8 into its number: looking it up is faster
// than converting it.
var signed = func() (table [256]float32) {
	for i := range table {
		table[i] = float32(int8(i))
	}
	return table
}()

const (
	tile  = 128 // columns that are worked on at once, so that they stay in the nearest cache; matrix_amd64.s has it too
	depth = 8   // rows of weights that are turned into float32 at once, for all tokens; likewise
)

// times gives x × m + bias, for all rows of x. Half the columns are done beside
// the other half. Rows are a multiple of depth and columns of 2 × tile.
func (m *matrix) times(x []float32) []float32 {
	out := make([]float32, len(x)/m.rows*m.columns)
	halves(m.columns/tile, func(from, to int) {
		for ; from < to; from++ {
			m.tile(x, out, from*tile)
		}
	})
	return out
}

// tile does the columns from "from" on.
func (m *matrix) tile(x, out []float32, from int) {
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

// widen turns int8 weights, from -127 to 127 and without a unit, into float32.
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

// addRows adds in × w to sum: one token's numbers times some rows of weights.
// The encoder spends almost all its time here.
func addRows(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32) {
	if vectorized {
		addRowsAVX2(sum, in, w)
		return
	}
	addRowsGo(sum, in, w)
}

// addRowsGo is addRows for every processor. Its loop runs over arrays of fixed
// size, so that the compiler leaves out all checks of bounds.
func addRowsGo(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32) {
	a, b, c, d, e, f, g, h := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]
	for i := range sum {
		sum[i] += (a*w[0][i] + b*w[1][i] + c*w[2][i] + d*w[3][i]) + (e*w[4][i] + f*w[5][i] + g*w[6][i] + h*w[7][i])
	}
}

// dot multiplies two rows of the same length, a multiple of 4. Four sums, because
// one would wait for itself.
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
