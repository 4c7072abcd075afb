package encoder

import (
	"math"
	"unsafe"
)

// matrix holds a layer's weights in int8. The real weights are weights × scale of their column (of
// their row, for embeddings).
type matrix struct {
	rows, columns int
	weights       []byte // int8, row by row
	scale         []float32
	bias          []float32 // of each column
}

// tile is the number of columns computed at once; also in matrix_amd64.s.
const tile = 16

// maxInput is the largest magnitude of quantized numbers. Products are computed in integers, so that
// sums are the same in any order, and fit into int32: 4095 × 4095 × 128 in attention (maxPieces, and
// the numbers of a head), 4095 × 128 × 1536 elsewhere (int8, inner).
const maxInput = 4095

// quantized holds rows of int16. The real numbers are these × scale of their row.
type quantized struct {
	pairs []int32 // two numbers each, the first in the lower half
	scale []float32
}

// addProduct adds x × m + bias to out. Rows of m are a multiple of 16 and columns of tile.
func (m *matrix) addProduct(out []float32, x quantized, s *workspace) {
	for from := 0; from < m.columns; from += tile {
		s.addTile(out[from:], m.columns, x, m.rows/2, m.weights[from:], m.scale[from:], m.bias[from:])
	}
}

// addTile adds x × s.tile × scale + bias to out, for one tile of columns. out has rows of that many
// columns, and x of that many pairs. It takes almost all of the encoder's time.
//
// A number of s.tile is a pair of int16, the weights of a column in two rows. If weights is not nil, it
// has int8 in rows of that many columns instead, and s.tile is overwritten.
func (s *workspace) addTile(out []float32, columns int, x quantized, pairs int, weights []byte, scale, bias []float32) {
	if vectorized {
		addTileAVX2(&out[0], columns, &x.pairs[0], &x.scale[0], len(x.scale), pairs,
			&s.tile[0], unsafe.SliceData(weights), &scale[0], &bias[0])
		return
	}
	s.addTileGo(out, columns, x, pairs, weights, scale, bias)
}

// addTileGo is addTile in Go. The product of two pairs as numbers of 64 bits, one of them swapped, has
// the sum of both products in its upper half: two multiplications in one.
func (s *workspace) addTileGo(out []float32, columns int, x quantized, pairs int, weights []byte, scale, bias []float32) {
	for i := range pairs {
		into := (*[tile]int32)(s.tile[i*tile:])
		if weights != nil {
			first, second := (*[tile]byte)(weights[2*i*columns:]), (*[tile]byte)(weights[(2*i+1)*columns:])
			for c := range into {
				into[c] = int32(uint16(int8(first[c]))) | int32(int8(second[c]))<<16
			}
		}
		for c, p := range into {
			s.goTile[c][i] = int64(int16(p)) + int64(p>>16)<<32
		}
	}
	for first := 0; first < len(x.scale); first += 4 {
		n := min(4, len(x.scale)-first)
		for i, p := range x.pairs[first*pairs:][:n*pairs] {
			s.goRows[i] = int64(int16(p))<<32 + int64(p>>16)
		}
		for c := range tile {
			for i, sum := range columnTimesRows(s.goTile[c][:pairs], s.goRows[:n*pairs]) {
				if sum -= int64(int32(sum)); i < n { // without what the lower half carried
					row := first + i
					out[row*columns+c] += float32(float32(float32(sum>>32)*x.scale[row])*scale[c]) + bias[c]
				}
			}
		}
	}
}

// columnTimesRows returns the products of a column and up to four rows. Four at once are faster.
func columnTimesRows(column, rows []int64) (sum [4]int64) {
	n := len(column)
	if len(rows) < 4*n {
		for r := range len(rows) / n {
			var one int64
			for i, v := range rows[r*n:][:len(column)] {
				one += v * column[i]
			}
			sum[r] = one
		}
		return sum
	}
	a, b, c, d := rows[:n], rows[n:][:n], rows[2*n:][:n], rows[3*n:][:n]
	for i, v := range column {
		sum[0] += v * a[i]
		sum[1] += v * b[i]
		sum[2] += v * c[i]
		sum[3] += v * d[i]
	}
	return sum
}

// quantize writes a row, of a multiple of 16 numbers, into pairs and returns its scale. The largest
// magnitude becomes maxInput.
func quantize(pairs []int32, row []float32) (scale float32) {
	if vectorized {
		return quantizeAVX2(&pairs[0], &row[0], len(row))
	}
	return quantizeGo(pairs, row)
}

// MaxFactor is the largest magnitude of the numbers of q in Dot.
const MaxFactor = 1<<14 - 1

// Dot returns the dot product of v, which holds int8, and q, whose numbers are at most MaxFactor. Both
// are equally long, 8,000 numbers at most: sums of an eighth of the products are int32.
func Dot(v []byte, q []int16) (sum int64) {
	q = q[:len(v)]
	done := 0
	if vectorized && len(v) >= 32 {
		done = len(v) &^ 31
		sum = dotAVX2(&v[0], &q[0], done)
	}
	for i, b := range v[done:] {
		sum += int64(int8(b)) * int64(q[done+i])
	}
	return sum
}

// rounder, added to a number, rounds it: a float32 of this size has no fraction. Its lowest bits are
// the integer.
const rounder = 3 << 22

func quantizeGo(pairs []int32, row []float32) (scale float32) {
	largest := float32(1e-30)
	for _, v := range row {
		largest = max(largest, v, -v)
	}
	scale = largest / maxInput
	for i := range row[:len(row)/2] {
		a, b := float32(row[2*i]*(1/scale))+rounder, float32(row[2*i+1]*(1/scale))+rounder
		pairs[i] = int32(math.Float32bits(a)&0xffff | math.Float32bits(b)<<16)
	}
	return scale
}
