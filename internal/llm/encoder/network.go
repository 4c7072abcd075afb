package encoder

import (
	"context"
	"math"
	"sync"
)

// network is the transformer: embeddings of the pieces, two layers, the mean over all pieces, and a
// projection to the vector.
type network struct {
	embeddings matrix
	timing     []float32
	layers     [2]layer
	out        matrix
}

type layer struct {
	attentionNorm, forwardNorm layerNorm
	attention, attentionOut    matrix
	residual                   *matrix // where the layer is wider than its input
	up, down                   matrix
}

// run returns the vector of the pieces, at least one. It checks ctx before each layer and returns
// its error.
func (n *network) run(ctx context.Context, pieces []int32) ([]float32, error) {
	x := n.embed(pieces)
	for i := range n.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x = n.layers[i].run(x)
	}
	mean := make([]float32, Dims)
	for i, v := range x {
		mean[i%Dims] += v / float32(len(pieces))
	}
	vector := n.out.multiply(mean)
	var square float64
	for i, v := range vector {
		t := math.Tanh(float64(v))
		vector[i] = float32(t)
		square += t * t
	}
	inverse := float32(1 / math.Sqrt(max(square, 1e-12)))
	for i := range vector {
		vector[i] *= inverse
	}
	return vector, nil
}

// embed returns a row for each piece: its embedding plus its position as sines and cosines. The
// model counts the embedding twice.
func (n *network) embed(pieces []int32) []float32 {
	x := make([]float32, len(pieces)*width)
	for t, id := range pieces {
		row := x[t*width:][:width]
		weights := n.embeddings.weights[int(id)*width:][:width]
		scale := 2 * n.embeddings.scale[id]
		for i, w := range weights {
			row[i] = scale * signed[w]
		}
		for i, f := range n.timing {
			sine, cosine := math.Sincos(float64(t) * float64(f))
			row[i] += float32(sine)
			row[len(n.timing)+i] += float32(cosine)
		}
	}
	return x
}

func (l *layer) run(x []float32) []float32 {
	y := l.attentionOut.multiply(selfAttention(l.attention.multiply(l.attentionNorm.apply(x)), l.attention.rows))
	if l.residual != nil {
		x = l.residual.multiply(x)
	}
	for i, v := range x {
		y[i] += v
	}
	hidden := l.up.multiply(l.forwardNorm.apply(y))
	for i, v := range hidden {
		hidden[i] = max(v, 0)
	}
	z := l.down.multiply(hidden)
	for i, v := range y {
		z[i] += v
	}
	return z
}

// layerNorm is a layer normalization: mean 0 and variance 1, then a learned gain and bias.
type layerNorm struct{ gain, bias []float32 }

func (n layerNorm) apply(x []float32) []float32 {
	width := len(n.gain)
	out := make([]float32, len(x))
	for from := 0; from < len(x); from += width {
		row := x[from:][:width]
		var mean, variance float64
		for _, v := range row {
			mean += float64(v)
		}
		mean /= float64(width)
		for _, v := range row {
			variance += (float64(v) - mean) * (float64(v) - mean)
		}
		inverse := 1 / math.Sqrt(variance/float64(width)+1e-6)
		for i, v := range row {
			out[from+i] = float32((float64(v)-mean)*inverse)*n.gain[i] + n.bias[i]
		}
	}
	return out
}

// selfAttention is self-attention: it mixes the values of all pieces into each. A row of qkv is query, key
// and value, each of the same width.
func selfAttention(qkv []float32, width int) []float32 {
	tokens, head := len(qkv)/(3*width), width/heads
	out := make([]float32, tokens*width)
	scale := 1 / math.Sqrt(float64(head))
	inHalves(heads, func(first, end int) {
		weight := make([]float64, tokens)
		for at := first * head; at < end*head; at += head {
			part := func(token, which int) []float32 { return qkv[(3*token+which)*width+at:][:head] }
			for i := range tokens {
				query, most, sum := part(i, 0), math.Inf(-1), 0.0
				for j := range weight {
					weight[j] = scale * float64(dot(query, part(j, 1)))
					most = max(most, weight[j])
				}
				for j, w := range weight {
					weight[j] = math.Exp(w - most)
					sum += weight[j]
				}
				mix := out[i*width+at:][:head]
				for j, w := range weight {
					share, value := float32(w/sum), part(j, 2)
					for k, v := range value[:len(mix)] {
						mix[k] += share * v
					}
				}
			}
		}
	})
	return out
}

// inHalves runs do for both halves of n concurrently and waits.
func inHalves(n int, do func(from, to int)) {
	var other sync.WaitGroup
	other.Go(func() { do(n/2, n) })
	do(0, n/2)
	other.Wait()
}
