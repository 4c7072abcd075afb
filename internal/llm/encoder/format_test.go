package encoder

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLoadDamaged(t *testing.T) {
	whole := untrained()
	change := func(at int, with ...byte) []byte {
		data := slices.Clone(whole)
		copy(data[at:], with)
		return data
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no file of weights"},
		{"something else", []byte("<!DOCTYPE html><html>"), "no file of weights"},
		{"another version", change(len(magic)-2, '2'), "no file of weights"},
		{"no pieces", change(len(magic), 0, 0), "damaged"},
		{"too many pieces", change(len(magic), 0xff, 0xff), "damaged"},
		{"one byte more", append(slices.Clip(whole), 0), "damaged"},
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
