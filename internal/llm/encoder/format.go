package encoder

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

// A file of weights is: magic; the number of pieces (uint16) and each of them as
// length (uint8), text, score (float64); then the tensors of layout, one after the
// other. All numbers are little-endian. Nothing comes after.
const magic = "use-lite q8 1\n"

// form says how a tensor's numbers are kept.
type form int

const (
	plain    form = iota // float32
	byRow                // a float32 scale for each row, then int8
	byColumn             // a float32 scale for each column, then int8, row by row
)

type tensor struct {
	name          string
	rows, columns int
	form          form
}

const (
	words = 8002 // rows of embeddings: the pieces and two spare ones
	width = 256  // of an embedding
	inner = 1536 // in the middle of a layer
	heads = 4
)

// layout is the order of the file.
func layout() []tensor {
	all := []tensor{{"embeddings", words, width, byRow}, {"timing", 1, width / 2, plain}}
	dense := func(name string, rows, columns int) {
		all = append(all, tensor{name + "/weights", rows, columns, byColumn}, tensor{name + "/bias", 1, columns, plain})
	}
	norm := func(name string, columns int) {
		all = append(all, tensor{name + "/gain", 1, columns, plain}, tensor{name + "/bias", 1, columns, plain})
	}
	for i, in := range []int{width, Dims} {
		in, name := in, fmt.Sprintf("layer %d/", i)
		norm(name+"attention norm", in)
		dense(name+"attention", in, 3*in)
		dense(name+"attention out", in, Dims)
		if in != Dims {
			dense(name+"residual", in, Dims)
		}
		norm(name+"forward norm", Dims)
		dense(name+"forward up", Dims, inner)
		dense(name+"forward down", inner, Dims)
	}
	dense("out", Dims, Dims)
	return all
}

// Piece is an entry of the vocabulary. Its number is its place.
type Piece struct {
	Text  string
	Score float64
}

// Write makes a file that Load reads, always the same from the same: numbers gives
// the float32 weights by name, row by row, and Write rounds them to int8 where
// that is worth it.
func Write(to io.Writer, vocabulary []Piece, numbers func(name string) []float32) error {
	w := bufio.NewWriter(to)
	w.WriteString(magic)
	if len(vocabulary) <= reserved || len(vocabulary) > words {
		return fmt.Errorf("the vocabulary has %d pieces; more than %d and at most %d were expected", len(vocabulary), reserved, words)
	}
	binary.Write(w, binary.LittleEndian, uint16(len(vocabulary)))
	for i, p := range vocabulary {
		if len(p.Text) > math.MaxUint8 {
			return fmt.Errorf("piece %d has %d bytes; %d are the most", i, len(p.Text), math.MaxUint8)
		}
		w.WriteByte(byte(len(p.Text)))
		w.WriteString(p.Text)
		binary.Write(w, binary.LittleEndian, p.Score)
	}
	for _, t := range layout() {
		values := numbers(t.name)
		if len(values) != t.rows*t.columns {
			return fmt.Errorf("%s has %d numbers; %d × %d were expected", t.name, len(values), t.rows, t.columns)
		}
		if t.form == plain {
			binary.Write(w, binary.LittleEndian, values)
			continue
		}
		scale, rounded := t.round(values)
		binary.Write(w, binary.LittleEndian, scale)
		binary.Write(w, binary.LittleEndian, rounded)
	}
	return w.Flush() // it remembers the first error of all the writes
}

// round gives int8 numbers and what to multiply them with: the largest of each row
// or column becomes ±127.
func (t tensor) round(values []float32) (scale []float32, rounded []int8) {
	of := func(i int) int { return i / t.columns }
	scale = make([]float32, t.rows)
	if t.form == byColumn {
		of = func(i int) int { return i % t.columns }
		scale = make([]float32, t.columns)
	}
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

// Load makes an encoder of a file of weights as Write makes it. It keeps data,
// which must not be changed any more. Data that is damaged, cut off or something
// else is an error; what cannot be told from weights is taken for weights.
func Load(data []byte) (*Encoder, error) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, errors.New("this is no file of weights of this version; `make weights` makes one")
	}
	r := &reader{data: data, at: len(magic)}
	e := &Encoder{vocabulary: r.vocabulary()}
	plains, int8s := map[string][]float32{}, map[string]matrix{}
	for _, t := range layout() {
		m := matrix{rows: t.rows, columns: t.columns}
		switch t.form {
		case plain:
			plains[t.name] = r.floats(t.rows * t.columns)
			continue
		case byRow:
			m.scale = r.floats(t.rows)
		case byColumn:
			m.scale = r.floats(t.columns)
		}
		m.weights = r.bytes(t.rows * t.columns)
		int8s[t.name] = m
	}
	if r.err == nil && r.at != len(data) {
		r.fail("%d bytes too many", len(data)-r.at)
	}
	if r.err != nil {
		return nil, fmt.Errorf("the file of weights is damaged: %w; `make weights` makes a new one", r.err)
	}
	e.network = assemble(plains, int8s)
	return e, nil
}

// reader reads until something is wrong, and gives zeros then.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.at, fmt.Errorf(format, args...))
	}
}

// bytes gives the next n bytes, without a copy; nil when there are less.
func (r *reader) bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.data)-r.at {
		r.fail("it ends where %d bytes more were expected", n-(len(r.data)-r.at))
		return nil
	}
	b := r.data[r.at : r.at+n : r.at+n]
	r.at += n
	return b
}

func (r *reader) floats(n int) []float32 {
	b := r.bytes(4 * n)
	if b == nil {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if x := float64(out[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			r.fail("a number that is none")
			return nil
		}
	}
	return out
}

func (r *reader) vocabulary() vocabulary {
	v := vocabulary{ids: map[string]int32{}}
	count := r.bytes(2)
	if count == nil {
		return v
	}
	n := int(binary.LittleEndian.Uint16(count))
	if n <= reserved || n > words {
		r.fail("a vocabulary of %d pieces", n)
		return v
	}
	for id := range n {
		length := r.bytes(1)
		if length == nil {
			return v
		}
		text, score := r.bytes(int(length[0])), r.bytes(8)
		if score == nil {
			return v
		}
		s := math.Float64frombits(binary.LittleEndian.Uint64(score))
		if math.IsNaN(s) || math.IsInf(s, 0) {
			r.fail("piece %d has a score that is no number", id)
			return v
		}
		v.scores = append(v.scores, s)
		if id >= reserved && len(text) > 0 {
			v.ids[string(text)] = int32(id) // of two alike the later one counts
			v.longest = max(v.longest, utf8.RuneCount(text))
		}
	}
	return v
}
