package encoder

import (
	"context"
	"math"
	"slices"
	"sync"
)

// network is the transformer: embeddings of the pieces, two layers, the mean over all pieces, and a
// projection to the vector.
type network struct {
	embeddings matrix
	timing     []float32 // of each pair of sine and cosine: its frequency
	positions  []float32 // a row for each position: its sines and cosines, kept as they take long
	layers     [2]layer
	out        matrix
}

type layer struct {
	attentionNorm, forwardNorm layerNorm
	attention, attentionOut    matrix
	residual                   *matrix // where the layer is wider than its input
	up, down                   matrix
}

// workspace is the memory for some texts of at most maxPieces pieces. It is reused, as fresh memory is
// slow.
type workspace struct {
	x, y, mixed              [maxPieces * Dims]float32           // a row for each piece
	wide                     [maxPieces * inner]float32          // queries, keys and values; then hidden values
	input                    [maxPieces * inner / 2]int32        // pairs
	query, key, value, share [maxPieces * Dims / heads / 2]int32 // pairs
	scale                    [5][maxPieces]float32               // of the rows of each of these
	scores                   [maxPieces * maxPieces]float32
	tile                     [inner / 2 * tile]int32
	goTile                   [tile][inner / 2]int64 // only for addTileGo
	goRows                   [4 * inner / 2]int64
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// zeros returns the first n numbers of buffer, as 0.
func zeros(buffer []float32, n int) []float32 {
	clear(buffer[:n])
	return buffer[:n]
}

// run returns the vector of each text, given by its pieces, at least one and at most maxPieces in all.
// It checks ctx before each layer and returns its error.
func (n *network) run(ctx context.Context, texts [][]int32) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, ctx.Err()
	}
	s := workspaces.Get().(*workspace)
	defer workspaces.Put(s)
	x := n.embed(s.x[:0], texts)
	var hidden []float32
	for i := range n.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i > 0 {
			n.layers[i-1].down.addProduct(x, s.quantizeRows(hidden, inner), s)
		}
		x, hidden = n.layers[i].run(s, x, texts)
	}
	// The rest of the last layer is linear, so the mean may come before it: one row for each text.
	mean, vectors := means(x, Dims, texts), make([]float32, len(texts)*Dims)
	n.layers[len(n.layers)-1].down.addProduct(mean, s.quantizeRows(means(hidden, inner, texts), inner), s)
	n.out.addProduct(vectors, s.quantizeRows(mean, Dims), s)
	out := slices.Collect(slices.Chunk(vectors, Dims))
	for _, vector := range out {
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
	}
	return out, nil
}

// embed appends a row for each piece to x: its embedding plus its position as sines and cosines. The
// model counts the embedding twice.
func (n *network) embed(x []float32, texts [][]int32) []float32 {
	for _, pieces := range texts {
		for t, id := range pieces {
			scale := 2 * n.embeddings.scale[id]
			for i, w := range n.embeddings.weights[int(id)*width:][:width] {
				x = append(x, scale*float32(int8(w))+n.positions[t*width+i])
			}
		}
	}
	return x
}

// fillPositions sets positions from timing.
func (n *network) fillPositions() {
	n.positions = make([]float32, maxPieces*width)
	for i := range n.positions {
		angle := float64(i/width) * float64(n.timing[i%(width/2)])
		if i%width >= width/2 {
			angle += math.Pi / 2
		}
		n.positions[i] = float32(math.Sin(angle))
	}
}

// run returns y and hidden. The layer's result is y + hidden × down.
func (l *layer) run(s *workspace, x []float32, texts [][]int32) (y, hidden []float32) {
	qkv, y := zeros(s.wide[:], 3*len(x)), x
	l.attention.addProduct(qkv, l.attentionNorm.apply(x, s), s)
	mixed := zeros(s.mixed[:], len(x))
	selfAttention(mixed, qkv, l.attention.rows, texts, s)
	if l.residual != nil {
		y = zeros(s.y[:], len(x)/width*Dims)
		l.residual.addProduct(y, s.quantizeRows(x, width), s)
	}
	l.attentionOut.addProduct(y, s.quantizeRows(mixed, l.attention.rows), s)
	hidden = zeros(s.wide[:], len(y)/Dims*inner)
	l.up.addProduct(hidden, l.forwardNorm.apply(y, s), s)
	for i, v := range hidden { // max(v, 0), but faster: the sign bit clears all bits
		bits := math.Float32bits(v)
		hidden[i] = math.Float32frombits(bits &^ uint32(int32(bits)>>31))
	}
	return y, hidden
}

// means returns a row for each text, the mean of the rows of its pieces.
func means(x []float32, columns int, texts [][]int32) []float32 {
	out := make([]float32, len(texts)*columns)
	for i, text := range texts {
		mean, share := out[i*columns:][:columns], 1/float32(len(text))
		for range text {
			for c, v := range x[:columns] {
				mean[c] += v * share
			}
			x = x[columns:]
		}
	}
	return out
}

// quantizeRows quantizes rows of n numbers into s.input.
func (s *workspace) quantizeRows(x []float32, n int) quantized {
	q := quantized{s.input[:len(x)/2], s.scale[4][:len(x)/n]}
	for i := range q.scale {
		q.scale[i] = quantize(q.pairs[i*n/2:], x[i*n:][:n])
	}
	return q
}

// layerNorm is a layer normalization: mean 0 and variance 1, then a learned gain and bias.
type layerNorm struct{ gain, bias []float32 }

// apply returns the normalized rows of x, quantized.
func (n layerNorm) apply(x []float32, s *workspace) quantized {
	width := len(n.gain)
	out := s.mixed[:len(x)]
	for from := 0; from < len(x); from += width {
		row := x[from:][:width]
		var sum, square [4]float64 // of a quarter each, so as not to wait for every addition
		for c := 0; c < width; c += 4 {
			for k, v := range (*[4]float32)(row[c:]) {
				sum[k] += float64(v)
				square[k] += float64(v) * float64(v)
			}
		}
		mean := (sum[0] + sum[1] + sum[2] + sum[3]) / float64(width)
		variance := (square[0]+square[1]+square[2]+square[3])/float64(width) - mean*mean
		center, inverse := float32(mean), float32(1/math.Sqrt(variance+1e-6))
		for i, v := range row {
			out[from+i] = (v-center)*inverse*n.gain[i] + n.bias[i]
		}
	}
	return s.quantizeRows(out, width)
}

// selfAttention is self-attention: for each piece, it adds a mix of the values of its text to out. A
// row of qkv is query, key and value, each of the same width.
func selfAttention(out, qkv []float32, width int, texts [][]int32, s *workspace) {
	for _, pieces := range texts {
		for at := 0; at < width; at += width / heads {
			s.attend(out[at:], qkv[at:], len(pieces), width)
		}
		out, qkv = out[len(pieces)*width:], qkv[3*len(pieces)*width:]
	}
}

// attend is selfAttention of one text and one head, which begin at out and qkv. Both products are of
// tiles, as in a layer. What an earlier text left in the rows after the last piece has no effect.
func (s *workspace) attend(out, qkv []float32, tokens, width int) {
	head, columns := width/heads, (tokens+tile-1)/tile*tile
	for t := range tokens {
		for part, pairs := range [][]int32{s.query[:], s.key[:], s.value[:]} {
			s.scale[part][t] = quantize(pairs[t*head/2:], qkv[(3*t+part)*width:][:head])
		}
	}
	scores := zeros(s.scores[:], tokens*columns)
	for from := 0; from < columns; from += tile {
		for c := range tile {
			for i, pair := range s.key[(from+c)*head/2:][:head/2] {
				s.tile[i*tile+c] = pair
			}
		}
		s.addTile(scores[from:], columns, quantized{s.query[:], s.scale[0][:tokens]}, head/2, nil, s.scale[1][from:], zero[:])
	}
	sharpness := float32(math.Log2E / math.Sqrt(float64(head)))
	for t := range tokens {
		row := scores[t*columns:][:columns]
		most, sum := slices.Max(row[:tokens]), float32(0)
		for j, v := range row[:tokens] {
			e := exp2((v - most) * sharpness)
			sum += e
			row[j] = e * s.scale[2][j] // then value needs no scale
		}
		clear(row[tokens:])
		s.scale[3][t] = quantize(s.share[t*columns/2:], row) / sum
	}
	for from := 0; from < head; from += tile {
		for j := range columns / 2 {
			into, odd := s.tile[j*tile:][:tile], s.value[((2*j+1)*head+from)/2:]
			for i, even := range s.value[(2*j*head+from)/2:][:tile/2] {
				into[2*i], into[2*i+1] = even&0xffff|odd[i]<<16, int32(uint32(even)>>16)|odd[i]&^0xffff
			}
		}
		s.addTile(out[from:], width, quantized{s.share[:], s.scale[3][:tokens]}, columns/2, nil, one[:], zero[:])
	}
}

var zero, one = [tile]float32{}, [tile]float32(slices.Repeat([]float32{1}, tile))

// exp2 returns 2 to the power of x, at most 0, to five digits.
func exp2(x float32) float32 {
	if !(x > -100) {
		return 0
	}
	whole := float32(x+rounder) - rounder
	x = (x - whole) * math.Ln2 // e to the power of this is a short sum
	x = 1 + x*(1+x*(1./2+x*(1./6+x*(1./24+x*(1./120)))))
	return math.Float32frombits(math.Float32bits(x) + uint32(int32(whole))<<23)
}
