package encoder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLoadDamaged(t *testing.T) {
	whole := untrained()
	tensors := len(magic) + 2 // where they begin
	for range binary.LittleEndian.Uint16(whole[len(magic):]) {
		tensors += 1 + int(whole[tensors]) + 8
	}
	change := func(at int, with ...byte) []byte {
		data := slices.Clone(whole)
		copy(data[at:], with)
		return data
	}
	nan32 := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	inf64 := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Inf(-1)))
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no file of weights"},
		{"something else", []byte("<!DOCTYPE html><html>"), "no file of weights"},
		{"another version", change(len(magic)-2, '2'), "no file of weights"},
		{"no pieces", change(len(magic), 0, 0), "a vocabulary of 0 pieces"},
		{"too many pieces", change(len(magic), 0xff, 0xff), "a vocabulary of 65535 pieces"},
		{"a score that is none", change(len(magic)+2+1, inf64...), "piece 0 has a score that is no number"},
		{"a scale that is none", change(tensors, nan32...), "a number that is none"},
		{"a bias that is none", change(len(whole)-4, nan32...), "a number that is none"},
		{"one byte missing", whole[:len(whole)-1], "bytes more were expected"},
		{"one byte more", append(slices.Clip(whole), 0), "1 bytes too many"},
	} {
		e, err := Load(c.data)
		if e != nil || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "make") {
			t.Errorf("%s: error %v, want one with %q and what to do", c.name, err, c.want)
		}
	}
	for end := 0; end < len(whole); end += 1 + end/7 {
		if _, err := Load(whole[:end]); err == nil {
			t.Errorf("the first %d bytes are taken for the whole", end)
		}
	}
	if _, err := Load(whole); err != nil {
		t.Errorf("the whole: %v", err)
	}
}

func TestRound(t *testing.T) {
	values := []float32{
		0, 1, -2, 0.003,
		0, 0.5, 4, -0.001,
		0, -0.25, 0, 0,
	}
	for _, c := range []struct {
		form  form
		scale []float32
	}{
		{byRow, []float32{2. / 127, 4. / 127, 0.25 / 127}},
		{byColumn, []float32{0, 1. / 127, 4. / 127, 0.003 / 127}},
	} {
		shape := tensor{"", 3, 4, c.form}
		scale, rounded := shape.round(values)
		if !slices.Equal(scale, c.scale) {
			t.Errorf("scale %v, want %v", scale, c.scale)
		}
		for i, v := range values {
			s := c.scale[i/4]
			if c.form == byColumn {
				s = c.scale[i%4]
			}
			if off := math.Abs(float64(s)*float64(rounded[i]) - float64(v)); off > 0.5001*float64(s) {
				t.Errorf("%v became %d × %v, which is %v off", v, rounded[i], s, off)
			}
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	some := make([]Piece, 10)
	for _, c := range []struct {
		name    string
		to      io.Writer
		pieces  []Piece
		numbers int
		want    string
	}{
		{"no vocabulary", io.Discard, nil, 0, "0 pieces"},
		{"too many pieces", io.Discard, make([]Piece, words+1), 0, "8003 pieces"},
		{"a long piece", io.Discard, append(slices.Clone(some), Piece{Text: strings.Repeat("x", 256)}), 0, "piece 10 has 256 bytes"},
		{"too few numbers", io.Discard, some, words*width - 1, "embeddings has 2048511 numbers; 8002 × 256"},
		{"a full disk", full{}, some, -1, "no space left"},
	} {
		err := Write(c.to, c.pieces, func(name string) []float32 {
			for _, known := range layout() {
				if known.name == name && c.numbers < 0 {
					return make([]float32, known.rows*known.columns)
				}
			}
			return make([]float32, max(c.numbers, 0))
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A matrix gives what the sums written out give, for any number of rows.
func TestTimes(t *testing.T) {
	const rows, columns = 16, 4 * tile
	m := matrix{rows: rows, columns: columns, weights: make([]byte, rows*columns), scale: make([]float32, columns), bias: make([]float32, columns)}
	for i := range m.weights {
		m.weights[i] = byte(i * 37)
	}
	for i := range columns {
		m.scale[i], m.bias[i] = float32(i%5)/4, float32(i%11)
	}
	eachPath(t, func(t *testing.T) {
		for _, tokens := range []int{1, 2, 7} {
			x := make([]float32, tokens*rows)
			for i := range x {
				x[i] = float32(i%13 - 6)
			}
			got := m.times(x)
			for i := range got {
				row, column := i/columns, i%columns
				var want float32
				for k := range rows {
					want += x[row*rows+k] * float32(int8(m.weights[k*columns+column]))
				}
				if want = want*m.scale[column] + m.bias[column]; got[i] != want { // whole numbers and quarters: exact
					t.Fatalf("%d rows: number %d is %v, want %v", tokens, i, got[i], want)
				}
			}
		}
	})
}

// Whatever the file says, loading it is an error or makes an encoder that encodes.
func FuzzLoad(f *testing.F) {
	whole := untrained()
	f.Add(uint32(0), []byte{}, uint32(len(whole)))
	f.Add(uint32(len(magic)), []byte{7, 0}, uint32(len(whole)))
	f.Add(uint32(len(magic)+2), []byte{255, 1, 2}, uint32(len(whole)))
	f.Add(uint32(500), []byte{0xff, 0xff, 0x7f, 0x7f}, uint32(len(whole)))
	f.Add(uint32(len(whole)-8), []byte{0, 0, 0xc0, 0x7f}, uint32(3000))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, end uint32) {
		data := bytes.Clone(whole[:min(int(end), len(whole))])
		if len(data) > 0 {
			copy(data[int(at)%len(data):], patch)
		}
		e, err := Load(data)
		if err != nil {
			return
		}
		if vector, _, err := e.Encode(t.Context(), "the hat"); err != nil || len(vector) != Dims {
			t.Errorf("%d numbers, error %v", len(vector), err)
		}
	})
}

// The pieces of a text are the text, without gaps; and there are not too many.
func FuzzPieces(f *testing.F) {
	e, err := Load(untrained())
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "the hat", "the\x00h\xffat", "\u0301\u0301", "🍕 the 我", "ﷺ½ｔ", "▁▁the ▁", "e\u0301\u200d\ufe0f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var joined strings.Builder
		tidied := tidy(text)
		for _, p := range e.vocabulary.best(tidied) {
			joined.WriteString(p.text)
			if p.id != 0 && e.vocabulary.ids[p.text] != p.id || p.id == 0 && utf8.RuneCountInString(p.text) != 1 {
				t.Errorf("%q has number %d", p.text, p.id)
			}
		}
		if joined.String() != tidied || !utf8.ValidString(tidied) {
			t.Errorf("%q was made %q and cut into pieces of %q", text, tidied, joined.String())
		}
		ids, unknown := e.vocabulary.pieces(text)
		if len(ids) > maxPieces || !(unknown >= 0 && unknown <= 1) || (len(ids) == 0) != (tidied == "") {
			t.Errorf("%q: %d pieces, %v unknown", text, len(ids), unknown)
		}
	})
}
