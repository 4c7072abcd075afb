package vector

import (
	"errors"
	"math"
)

// Vectors are stored quantized: a signed byte per dimension, the largest ±127, without the length.
// That takes a quarter of the space and changes a cosine by about 0.0003.

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
	if len(blob) != dim {
		return nil
	}
	v := make([]float32, dim)
	for i, b := range blob {
		v[i] = float32(int8(b))
	}
	return unit(v)
}

// dot is the dot product, in four sums that a processor can compute in parallel.
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
