package encoder

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// A file of weights holds: magic; the number of pieces (uint16) and each piece as length (uint8),
// text, score (float64); then the tensors in the order of tensors. Numbers are little-endian.
const magic = "use-lite q8 1\n"

// form is the encoding of a tensor's numbers.
type form int

const (
	plain    form = iota // float32
	byRow                // a float32 scale for each row, then int8
	byColumn             // a float32 scale for each column, then int8, row by row
)

// tensor is a part of the file. Its numbers are stored in values if its form is plain, else in
// matrix.
type tensor struct {
	name          string
	rows, columns int
	form          form
	matrix        *matrix
	values        *[]float32
}

const (
	words = 8002 // rows of embeddings: the pieces and two unused ones
	width = 256  // of an embedding
	inner = 1536 // hidden width of a layer
	heads = 4
)

// tensors returns the parts of n in the order of the file.
func (n *network) tensors() []tensor {
	var all []tensor
	values := func(name string, columns int, to *[]float32) {
		all = append(all, tensor{name: name, rows: 1, columns: columns, form: plain, values: to})
	}
	dense := func(name string, rows, columns int, to *matrix) {
		all = append(all, tensor{name: name + "/weights", rows: rows, columns: columns, form: byColumn, matrix: to})
		values(name+"/bias", columns, &to.bias)
	}
	norm := func(name string, columns int, to *layerNorm) {
		values(name+"/gain", columns, &to.gain)
		values(name+"/bias", columns, &to.bias)
	}
	all = append(all, tensor{name: "embeddings", rows: words, columns: width, form: byRow, matrix: &n.embeddings})
	values("timing", width/2, &n.timing)
	for i, in := range []int{width, Dims} {
		l, name := &n.layers[i], fmt.Sprintf("layer %d/", i)
		norm(name+"attention norm", in, &l.attentionNorm)
		dense(name+"attention", in, 3*in, &l.attention)
		dense(name+"attention out", in, Dims, &l.attentionOut)
		if in != Dims {
			l.residual = &matrix{}
			dense(name+"residual", in, Dims, l.residual)
		}
		norm(name+"forward norm", Dims, &l.forwardNorm)
		dense(name+"forward up", Dims, inner, &l.up)
		dense(name+"forward down", inner, Dims, &l.down)
	}
	dense("out", Dims, Dims, &n.out)
	return all
}

// Piece is an entry of the vocabulary. Its id is its index.
type Piece struct {
	Text  string
	Score float64
}

// Write writes a file that Load reads. Its output is deterministic. numbers returns the float32
// weights by name, row by row; Write quantizes the large tensors to int8.
func Write(to io.Writer, vocabulary []Piece, numbers func(name string) []float32) error {
	w := bufio.NewWriter(to)
	w.WriteString(magic)
	binary.Write(w, binary.LittleEndian, uint16(len(vocabulary)))
	for _, p := range vocabulary {
		w.WriteByte(byte(len(p.Text)))
		w.WriteString(p.Text)
		binary.Write(w, binary.LittleEndian, p.Score)
	}
	for _, t := range new(network).tensors() {
		values := numbers(t.name)
		if t.form == plain {
			binary.Write(w, binary.LittleEndian, values)
			continue
		}
		scale, rounded := t.round(values)
		binary.Write(w, binary.LittleEndian, scale)
		binary.Write(w, binary.LittleEndian, rounded)
	}
	return w.Flush() // returns the first error of all writes
}

// round quantizes to int8. The largest value of each row or column becomes ±127.
func (t tensor) round(values []float32) (scale []float32, rounded []int8) {
	of := func(i int) int { return i / t.columns }
	if t.form == byColumn {
		of = func(i int) int { return i % t.columns }
	}
	scale = make([]float32, t.scales())
	for i, v := range values {
		scale[of(i)] = max(scale[of(i)], v, -v)
	}
	for i := range scale {
		scale[i] /= math.MaxInt8
	}
	rounded = make([]int8, len(values))
	for i, v := range values {
		if s := scale[of(i)]; s > 0 {
			rounded[i] = int8(min(math.MaxInt8, max(-math.MaxInt8, math.Round(float64(v)/float64(s)))))
		}
	}
	return scale, rounded
}

// Load parses a file written by Write. It keeps data, which must not change afterwards. Data of
// another length or form is an error.
func Load(data []byte) (*Encoder, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, errors.New("not a weights file of this version; `make weights` makes one")
	}
	e := &Encoder{}
	e.vocabulary, rest, ok = readVocabulary(rest)
	size, all := 0, e.network.tensors()
	for _, t := range all {
		if size += 4 * t.scales(); t.form != plain {
			size += t.rows * t.columns
		}
	}
	if !ok || len(rest) != size {
		return nil, errors.New("the weights file is damaged; `make weights` makes a new one")
	}
	next := func(n int) []byte {
		b := rest[:n:n]
		rest = rest[n:]
		return b
	}
	for _, t := range all {
		numbers := floats(next(4 * t.scales()))
		if t.form == plain {
			*t.values = numbers
			continue
		}
		m := t.matrix
		m.rows, m.columns, m.scale, m.weights = t.rows, t.columns, numbers, next(t.rows*t.columns)
	}
	e.network.fillPositions()
	return e, nil
}

// scales returns how many float32 numbers a tensor has in the file: one for each row or column. A plain
// one has one row.
func (t tensor) scales() int {
	if t.form == byRow {
		return t.rows
	}
	return t.columns
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// readVocabulary parses the pieces at the start of data.
func readVocabulary(data []byte) (v vocabulary, rest []byte, ok bool) {
	v.ids, v.begins = map[string]int32{}, new([1 << 16]bool)
	if len(data) < 2 {
		return v, nil, false
	}
	n := int(binary.LittleEndian.Uint16(data))
	if n <= reserved || n > words {
		return v, nil, false
	}
	rest = data[2:]
	for id := range n {
		if len(rest) == 0 || len(rest) < 1+int(rest[0])+8 {
			return v, nil, false
		}
		text := string(rest[1 : 1+int(rest[0])])
		rest = rest[1+len(text):]
		v.scores = append(v.scores, math.Float64frombits(binary.LittleEndian.Uint64(rest)))
		rest = rest[8:]
		if id >= reserved && text != "" {
			v.ids[text] = int32(id) // of duplicates the last counts
			hash := uint32(0)
			for _, r := range text {
				hash = prefixHash(hash, r)
				v.begins[hash] = true
			}
		}
	}
	return v, rest, true
}
