package vector

import (
	"errors"
	"math"
)

// A vector is kept as a signed byte per number, the largest of them ±127. Its
// length is of no account. That costs a quarter of the room, and moves a cosine by
// about 0.0003.

var errNoVector = errors.New("it is all zeros or holds something that is not a number")

// encodeVector writes v as it is kept. Nil, for a text that the model makes
// nothing of, is empty.
func encodeVector(v []float32) ([]byte, error) {
	var most float64
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, errNoVector
		}
		most = max(most, math.Abs(float64(x)))
	}
	if most == 0 && len(v) > 0 {
		return nil, errNoVector
	}
	out := make([]byte, len(v))
	for i, x := range v {
		out[i] = byte(int8(math.Round(float64(x) / most * 127)))
	}
	return out, nil
}

// decodeVector reads what encodeVector wrote for vectors of dim numbers, with length 1; nil
// for an empty one.
func decodeVector(blob []byte, dim int) []float32 {
	if len(blob) != dim {
		return nil
	}
	v := make([]float32, dim)
	for i, b := range blob {
		v[i] = float32(int8(b))
	}
	return unit(v)
}

// dot is the sum of products, in four parts that a processor adds at the same time.
func dot(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return float64(s0 + s1 + s2 + s3)
}

// unit is v with length 1; nil for a vector that points nowhere.
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
