package vector

import (
	"errors"
	"math"

	"reverie/internal/llm/encoder"
)

// Vectors are stored and compared quantized: a signed byte per dimension, the largest ±127, without the
// length. That takes a quarter of the space and changes a cosine by about 0.0003.

var errNoVector = errors.New("it is all zeros or holds something that is not a number")

// encodeVector quantizes v. Nil, which stands for a text that the model cannot embed, becomes
// empty.
func encodeVector(v []float32) ([]byte, error) {
	var maxAbs float64
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, errNoVector
		}
		maxAbs = max(maxAbs, math.Abs(float64(x)))
	}
	if maxAbs == 0 && len(v) > 0 {
		return nil, errNoVector
	}
	out := make([]byte, len(v))
	for i, x := range v {
		out[i] = byte(int8(math.Round(float64(x) / maxAbs * 127)))
	}
	return out, nil
}

// decodeVector returns the unit vector of a blob of dim numbers; nil for an empty one.
func decodeVector(blob []byte, dim int) []float32 {
	return newCode(blob, dim).vector()
}

// code is a quantized vector in memory.
type code struct {
	numbers []byte  // int8
	scale   float64 // numbers × scale is of length 1
}

// newCode returns the code of a blob of dim numbers. It has no numbers for an empty blob.
func newCode(blob []byte, dim int) code {
	square := 0
	for _, b := range blob {
		square += int(int8(b)) * int(int8(b))
	}
	if len(blob) != dim || square == 0 {
		return code{}
	}
	return code{blob, 1 / math.Sqrt(float64(square))}
}

func (c code) vector() []float32 {
	v := make([]float32, len(c.numbers))
	for i, b := range c.numbers {
		v[i] = float32(int8(b))
	}
	return unit(v)
}

// query is a vector that codes are compared with.
type query struct {
	numbers []int16
	scale   float64
}

// newQuery quantizes q. That changes a cosine by about 0.00001. A query that is
// zero or infinite has none.
func newQuery(q []float32) query {
	q = unit(q)
	largest := float32(0)
	for _, x := range q {
		largest = max(largest, x, -x)
	}
	out := query{make([]int16, len(q)), float64(largest) / encoder.MaxFactor}
	for i, x := range q {
		out.numbers[i] = int16(math.Round(float64(x) / out.scale))
	}
	return out
}

// query returns c as a query.
func (c code) query() query {
	out := query{make([]int16, len(c.numbers)), c.scale}
	for i, b := range c.numbers {
		out.numbers[i] = int16(int8(b))
	}
	return out
}

// cosine compares q with c, which must be as long.
func (q query) cosine(c code) float64 {
	return float64(encoder.Dot(c.numbers, q.numbers)) * q.scale * c.scale
}

// unit returns v scaled to length 1; nil for a zero or infinite vector.
func unit(v []float32) []float32 {
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if !(square > 0) || math.IsInf(square, 0) {
		return nil
	}
	out, length := make([]float32, len(v)), math.Sqrt(square)
	for i, x := range v {
		out[i] = float32(float64(x) / length)
	}
	return out
}
