package encoder

import (
	"context"
	"math"
	"sync"
)

// network is the transformer: embeddings of the pieces, two layers, the mean over
// all pieces, and one layer more that makes the vector of it.
type network struct {
	embeddings matrix
	timing     []float32
	layers     [2]layer
	out        matrix
}

type layer struct {
	attentionNorm, forwardNorm normal
	attention, attentionOut    matrix
	residual                   *matrix // where the layer is wider than what comes in
	up, down                   matrix
}

// run gives the vector of the pieces, of which there is at least one. The error is
// ctx's, which is looked at before each layer.
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
	vector := n.out.times(mean)
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

// embed gives a row for each piece: its embedding and, as sines and cosines, its
// place in the text. The model counts the embedding twice.
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
	y := l.attentionOut.times(attend(l.attention.times(l.attentionNorm.of(x)), l.attention.rows))
	if l.residual != nil {
		x = l.residual.times(x)
	}
	for i, v := range x {
		y[i] += v
	}
	hidden := l.up.times(l.forwardNorm.of(y))
	for i, v := range hidden {
		hidden[i] = max(v, 0)
	}
	z := l.down.times(hidden)
	for i, v := range y {
		z[i] += v
	}
	return z
}

// normal brings each row to mean 0 and variance 1, then to what was learned.
type normal struct{ gain, bias []float32 }

func (n normal) of(x []float32) []float32 {
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

// attend mixes the values of all pieces into each, by how well its query fits
// their keys. A row of qkv is query, key and value, each of the same width.
func attend(qkv []float32, width int) []float32 {
	tokens, head := len(qkv)/(3*width), width/heads
	out := make([]float32, tokens*width)
	scale := 1 / math.Sqrt(float64(head))
	halves(heads, func(first, end int) {
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

// halves does a half of the work here and the other beside it, and waits for both.
func halves(n int, do func(from, to int)) {
	var other sync.WaitGroup
	other.Go(func() { do(n/2, n) })
	do(0, n/2)
	other.Wait()
}
