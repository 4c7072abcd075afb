package vram

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gguf "github.com/gpustack/gguf-parser-go"
	"pgregory.net/rapid"
)

// small is a model with two layers.
func small() model { return dense("llama", 2, 512, 8, 2, 64, 1024, 1000, false) }

// huge is the size of a file that may hold all weights that its header tells of.
const huge = 1 << 40

// sparse writes a header as a file of size bytes that takes no room on the disk.
func sparse(t testing.TB, header []byte, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, header, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, header []byte, size int64) (Shape, error) {
	t.Helper()
	return ReadShape(t.Context(), sparse(t, header, size))
}

func TestReadShape(t *testing.T) {
	m := llama()
	m.values["tokenizer.ggml.tokens"] = make([]string, 128256)
	m.values["tokenizer.chat_template"] = strings.Repeat("{{ template }}", 5000)
	m.values["general.type"], m.values["rope.freq_base"] = "model", float32(500000)
	delete(m.values, "vocab_size")
	s := m.shape(t)
	if s.trained != 131072 || len(s.blocks) != 32 || s.costs(8192, Options{}).weights != 4617396480 || s.logits != 128256+4096 {
		t.Errorf("%+v", s)
	}
	far := small()
	far.values["context_length"] = uint64(1 << 40)
	if s := far.shape(t); s.trained != maxWindow {
		t.Errorf("made for 2^40 tokens: %d, want %d", s.trained, maxWindow)
	}
	last := hybrid() // the last layer tells nothing of attention: another one is looked at
	last.tensors = slices.DeleteFunc(last.tensors, func(m made) bool { return m.name == "blk.47.attn_q.weight" })
	if got, want := last.need(t, 131072).toCompute(), hybrid().need(t, 131072).toCompute(); got != want {
		t.Errorf("without attention in its last layer: %d bytes to compute, want %d", got, want)
	}
	renamed := gptOSS()
	renamed.arch = "gptoss"
	if got, want := renamed.need(t, 8192), gptOSS().need(t, 8192); !reflect.DeepEqual(got, want) {
		t.Errorf("by the name Ollama gives it: %+v, want %+v", got, want)
	}
	seeing := gemma()
	seeing.tensors = append([]made{{"v.blk.0.attn_q.weight", f32, []uint64{1024, 1024}}, {"mm.input_projection.weight", f32, []uint64{1024}}}, seeing.tensors...)
	got, want := seeing.need(t, 8192), gemma().need(t, 8192)
	if got.weights != want.weights+4*(1024*1024+1024) || got.cache != want.cache || got.toCompute() != want.toCompute() {
		t.Errorf("with eyes: %+v, want %+v and 4 MiB of weights", got, want)
	}
}

// A model in parts is read whole, whichever part is named.
func TestReadShapeInParts(t *testing.T) {
	whole, dir := small(), t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("small-%05d-of-00003.gguf", i)) }
	for i := range 3 {
		part := model{arch: "llama", values: map[string]any{"split.no": i, "split.count": 3, "block_count": 99}}
		if i == 0 {
			part.values = small().values
			part.values["split.count"] = 3
		}
		for j, tensor := range whole.tensors {
			if j%3 == i {
				part.tensors = append(part.tensors, tensor)
			}
		}
		if err := os.Rename(part.file(t), name(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := ReadShape(t.Context(), name(2))
	if err != nil || !reflect.DeepEqual(s.costs(8192, Options{}), whole.need(t, 8192)) || s.trained != 131072 {
		t.Errorf("%+v, %v", s, err)
	}
	last, err := os.Stat(name(3))
	if err != nil || os.Truncate(name(3), last.Size()-1) != nil {
		t.Fatal(err)
	}
	if _, err := ReadShape(t.Context(), name(1)); err == nil || !strings.Contains(err.Error(), "downloaded to its end") {
		t.Errorf("one part cut: %v", err)
	}
	alone := filepath.Join(dir, "first.gguf")
	if err := os.Rename(name(1), alone); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadShape(t.Context(), alone); err == nil || !strings.Contains(err.Error(), "one of 3 parts") {
		t.Errorf("one part alone: %v", err)
	}
	if _, err := ReadShape(t.Context(), name(3)); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "00001-of-00003") {
		t.Errorf("one part missing: %v", err)
	}
	for _, n := range []string{"a-00001-of-00000.gguf", "a-00001-of-99999.gguf"} {
		if _, err := ReadShape(t.Context(), n); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), n) {
			t.Errorf("%s: %v", n, err)
		}
	}
}

// What a file may say that is wrong, and the words that tell.
func TestReadShapeRefuses(t *testing.T) {
	with := func(key string, v any) model {
		m := small()
		if v == nil {
			delete(m.values, key)
		} else {
			m.values[key] = v
		}
		return m
	}
	tensor := func(name string, kind gguf.GGMLType, dims ...uint64) model {
		m := small()
		m.tensor(name, kind, dims...)
		return m
	}
	named := func(arch string) model { m := small(); m.arch = arch; return m }
	nameless := small()
	nameless.arch = " "
	none := small()
	none.tensors = none.tensors[:3]
	for want, m := range map[string]model{
		`architecture "foobar"`:               named("foobar"),
		`the projector declares no type`:      named("clip"),
		`architecture "deepseek4"`:            named("deepseek4"),
		"names no architecture":               nameless,
		"an empty text":                       named(""),
		`goes with a model ("adapter")`:       with("general.type", "adapter"),
		"lacks llama.block_count":             with("block_count", nil),
		"lacks llama.context_length":          with("context_length", nil),
		"lacks llama.embedding_length":        with("embedding_length", 0),
		"lacks llama.attention.head_count":    with("attention.head_count", nil),
		"its llama.block_count cannot":        with("block_count", uint64(math.MaxUint64)),
		"its llama.context_length cannot":     with("context_length", "long"),
		"its llama.context_length canno":      with("context_length", int32(-1)),
		"its llama.attention.head_count cann": with("attention.head_count", []int32{}),
		"its llama.attention.head_count_kv c": with("attention.head_count_kv", []int32{8, -1}),
		"its llama.attention.key_length cann": with("attention.key_length", float32(128)),
		"its llama.embedding_length cannot":   with("embedding_length", int64(-4096)),
		"its llama.expert_count cannot be":    with("expert_count", 1<<30),
		"its llama.attention.head_count_kv ":  with("attention.head_count_kv", []bool{true, true}),
		"its llama.attention.head_count_kv":   with("attention.head_count_kv", []int32{8, 1 << 13}),
		"its llama.vocab_size cannot":         with("vocab_size", true),
		"lacks llama.ssm.conv_kernel":         with("full_attention_interval", 4),
		"beyond its 1 layers":                 with("block_count", 1),
		"embeddings":                          with("attention.causal", false),
		"it makes embeddings":                 with("pooling_type", 3),
		"divide by zero":                      with("general.alignment", 0),
		"is damaged or was not downloaded":    with("general.alignment", "wide"),
		"cannot be worked with":               tensor("a", 4, 32),
		"type is currently unsupported":       tensor("a", 999, 32),
		"overflow":                            tensor("a", f32, 1<<31, 1<<31, 1<<31, 1<<31),
		"too large to be real":                tensor("a", f32, 1<<25),
		"0 dimensions":                        tensor("a", f32),
		"5 dimensions":                        tensor("a", f32, 1, 1, 1, 1, 1),
		"no layers":                           none,
		"a name of 2000 bytes":                with(strings.Repeat("x", 2000-len("llama.")), 1),
	} {
		if s, err := read(t, m.header(), huge); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", want, s, err)
		}
	}
}

// raw writes numbers one behind the other.
func raw(parts ...any) []byte {
	var b bytes.Buffer
	for _, part := range parts {
		if s, ok := part.(string); ok {
			b.WriteString(s)
		} else {
			binary.Write(&b, binary.LittleEndian, part)
		}
	}
	return b.Bytes()
}

// Headers that lie about lengths cost an error, not memory or time.
func TestHostileHeaders(t *testing.T) {
	begin := func(parts ...any) []byte { // one value with the key "a"
		return raw(append([]any{"GGUF", uint32(3), uint64(0), uint64(1), uint64(1), "a"}, parts...)...)
	}
	nested := func(name string) []byte {
		header := raw("GGUF", uint32(3), uint64(0), uint64(1), uint64(len(name)), name, uint32(9))
		for range 1 << 20 {
			header = append(header, raw(uint32(9), uint64(1))...)
		}
		return header
	}
	count := func(name string, parts ...any) []byte {
		return raw(append([]any{"GGUF", uint32(3), uint64(0), uint64(1), uint64(len(name)), name}, parts...)...)
	}
	const split, heads = "split.tensors.count", "llama.attention.head_count_kv"
	for name, c := range map[string]struct {
		want   string
		header []byte
	}{
		"another format":             {"not a model", raw("GGML", uint32(3), uint64(0), uint64(0))},
		"another byte order":         {"GGUF version 50331648 is not", raw("GGUF", uint32(3<<24), uint64(0), uint64(0))},
		"version 1":                  {"GGUF version 1 is not", raw("GGUF", uint32(1), uint64(0), uint64(0))},
		"version 4":                  {"GGUF version 4 is not", raw("GGUF", uint32(4), uint64(0), uint64(0))},
		"nothing":                    {"names no", raw("GGUF", uint32(3), uint64(0), uint64(0))},
		"tensors without end":        {"18446744073709551615 tensor", raw("GGUF", uint32(3), uint64(math.MaxUint64), uint64(0))},
		"many tensors":               {"70000 tensors", raw("GGUF", uint32(3), uint64(70000), uint64(0))},
		"many values":                {"70000 values", raw("GGUF", uint32(3), uint64(0), uint64(70000))},
		"a text without end":         {"larger than the 128 MiB", begin(uint32(8), uint64(math.MaxUint64))},
		"a text as large as memory":  {"larger than the 128 MiB", begin(uint32(8), uint64(1<<39))},
		"a text in a list":           {"larger than the 128 MiB", begin(uint32(9), uint32(8), uint64(1), uint64(1<<62))},
		"a list without end":         {"a list of 4611686018427387", begin(uint32(9), uint32(0), uint64(1<<62))},
		"a list as large as memory":  {"a list of 549755813888 elements", count(heads, uint32(9), uint32(0), uint64(1<<39))},
		"texts without a letter":     {"a list of 18446744073709551615", begin(uint32(9), uint32(8), uint64(math.MaxUint64))},
		"lists in lists":             {"values of type 9", nested("a")},
		"lists in lists of heads":    {"values of type 9", nested(heads)},
		"a list of unknown values":   {"values of type 13", begin(uint32(9), uint32(13), uint64(5))},
		"an unknown value":           {"a value of type 13", begin(uint32(13))},
		"the last of unknown values": {"a value of type 4294967295", begin(uint32(math.MaxUint32))},
		"an empty text":              {"an empty text", begin(uint32(8), uint64(0))},
		"an empty text in a list":    {"an empty text", count(heads, uint32(9), uint32(8), uint64(1), uint64(0))},
		"an empty name":              {"an empty text", count("", uint32(0), uint8(1))},
		"many tensors in parts":      {split + " cannot", count(split, uint32(10), uint64(1<<36))},
		"many tensors, in a text":    {split + " cannot", count(split, uint32(8), uint64(11), "99999999999")},
		"many tensors, and a space":  {split + " cannot", count(" "+split+"\n", uint32(10), uint64(1<<36))},
		"a name without end":         {"a name of 18446744073709551615 bytes", raw("GGUF", uint32(3), uint64(1), uint64(0), uint64(math.MaxUint64))},
	} {
		if s, err := read(t, c.header, huge); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, s, err, c.want)
		}
	}
	for _, size := range []int64{0, 3, 4, 23} {
		if _, err := read(t, raw("GGUF", uint32(3), uint64(0), uint64(0)), size); err == nil {
			t.Errorf("a model of %d bytes is accepted", size)
		}
	}
}

// endless is a header that never ends: a value of one MiB follows the other.
type endless struct{ value []byte }

func (e endless) Read(p []byte) (n int, err error) {
	for n < len(p) { // each value is read from its beginning: it is as long as the buffer
		n += copy(p[n:], e.value)
	}
	return n, nil
}

func TestEndlessHeader(t *testing.T) {
	begin := raw("GGUF", uint32(3), uint64(0), uint64(maxEntries))
	header := func() io.Reader {
		value := raw(uint64(1), "a", uint32(8), uint64(64<<10-21))
		return io.MultiReader(bytes.NewReader(begin), endless{append(value, make([]byte, 64<<10-len(value))...)})
	}
	c := headerCheck{ctx: t.Context(), bytes: maxHeader, elements: maxElements}
	if err := c.header(header()); err == nil || !strings.Contains(err.Error(), "larger than the 128 MiB") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadShape(ctx, small().file(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("given up before it began: %v", err)
	}
	c = headerCheck{ctx: ctx, bytes: maxHeader, elements: maxElements} // and nothing goes on reading behind the back of who gave up
	if err := c.header(header()); !errors.Is(err, context.Canceled) || c.bytes != maxHeader {
		t.Errorf("reading went on: %v", err)
	}
}

// A drive that does not answer is not waited for.
func TestStuckDrive(t *testing.T) {
	asked, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := within(ctx, func(context.Context) (Shape, error) { close(asked); <-end; return Shape{}, io.ErrUnexpectedEOF })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := within(t.Context(), func(context.Context) (Shape, error) { panic("no reader") }); err == nil || !strings.Contains(err.Error(), "no reader") {
		t.Errorf("a reader that panics: %v", err)
	}
}

// Every beginning of a file that is not all of it is refused: a download that
// was broken off.
func TestCutFiles(t *testing.T) {
	m := small()
	header := m.header()
	for n := range header {
		if s, err := read(t, header[:n], int64(n)); err == nil {
			t.Fatalf("%d bytes of %d are a model: %+v", n, len(header), s)
		}
	}
	if _, err := read(t, header, m.size()); err != nil {
		t.Errorf("all of it: %v", err)
	}
	if _, err := read(t, header, m.size()-1); err == nil || !strings.Contains(err.Error(), "downloaded to its end") {
		t.Errorf("all but a byte: %v", err)
	}
	for _, path := range []string{t.TempDir(), "/dev/null", filepath.Join(t.TempDir(), "none.gguf")} {
		if _, err := ReadShape(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A shape the library panics on is an error, whoever asks.
func TestPanicsOfTheLibrary(t *testing.T) {
	s := Shape{trained: 4096, blocks: []uint64{1}, unfolded: 1, latent: 1, file: &gguf.GGUFFile{}}
	if f, err := Fit(s, cards(8192), Options{}); err == nil || !strings.Contains(err.Error(), "cannot be worked with") {
		t.Errorf("%+v, %v", f, err)
	}
}

// Any numbers the checks let through make an answer: no panic of the library's,
// and no sum that runs over, which would make a longer window cheaper.
func TestAnyNumbers(t *testing.T) {
	answers, dir := 0, t.TempDir()
	defer func() {
		if t.Logf("%d answers", answers); answers == 0 {
			t.Errorf("%d answers: the numbers are refused before they do anything", answers)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		m := model{arch: rapid.SampledFrom(known).Draw(t, "architecture"), values: map[string]any{}}
		for _, key := range slices.Sorted(maps.Keys(used)) {
			limit := used[key]
			number := rapid.OneOf(rapid.Uint64Range(0, min(limit, 8)), rapid.Uint64Range(0, limit), rapid.Just(limit))
			switch kind := rapid.IntRange(0, 99).Draw(t, key+" is"); {
			case kind < 50:
				m.values[key] = number.Draw(t, key)
			case kind < 70 && slices.Contains([]string{"attention.head_count", "attention.head_count_kv", "attention.sliding_window_pattern"}, key):
				m.values[key] = rapid.SliceOfN(rapid.Int32Range(0, int32(min(limit, 1<<12))), 1, 8).Draw(t, key)
			case kind == 70, kind < 80 && key == "attention.sliding_window_pattern":
				m.values[key] = rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(t, key)
			}
		}
		for key, most := range map[string]uint64{"block_count": 64, "context_length": 1 << 40, "embedding_length": 1 << 18} {
			m.values[key] = rapid.Uint64Range(1, most).Draw(t, key)
		}
		m.tensor("token_embd.weight", q4K, 256, 256)
		for _, name := range rapid.SliceOf(rapid.SampledFrom([]string{"attn_norm", "attn_q", "attn_qkv", "attn_q_b", "ffn_norm", "ssm_in", "ssm_conv1d", "ssm_a", "time_mix_w2", "time_mix_output"})).Draw(t, "tensors") {
			m.tensor("blk.0."+name+".weight", f32, rapid.SliceOfN(rapid.Uint64Range(0, 1<<14), 1, 2).Draw(t, "dimensions")...)
		}
		path := filepath.Join(dir, "model.gguf")
		if err := errors.Join(os.WriteFile(path, m.header(), 0o600), os.Truncate(path, huge)); err != nil {
			t.Fatal(err)
		}
		s, err := ReadShape(t.Context(), path)
		if err != nil {
			if strings.Contains(err.Error(), "cannot be worked with") {
				t.Fatal(err)
			}
			return
		}
		answers++
		previous := costs{layers: make([]uint64, len(s.blocks))}
		for window := step; window <= maxWindow; window *= 16 {
			var c costs
			if err := guarded(func() error { c = s.costs(window, Options{}); return nil }); err != nil {
				t.Fatal(err)
			}
			if c.compute[0] < previous.compute[0] || c.compute[1] < previous.compute[1] {
				t.Fatalf("computing takes less with %d tokens: %d and %d", window, previous.compute, c.compute)
			}
			for i, layer := range c.layers {
				if layer < previous.layers[i] {
					t.Fatalf("layer %d takes less with %d tokens: %d, %d", i, window, previous.layers[i], layer)
				}
			}
			previous = c
		}
	})
}

// Whatever a file holds, there is an answer or an error; and behind the reading none of
// the errors is a panic of the library's: the checks before it let nothing through.
func FuzzReadShape(f *testing.F) {
	for _, m := range []model{small(), llama(), gemma(), gptOSS(), latentModel(), hybrid()} {
		if len(m.tensors) > 30 {
			m.tensors = append(m.tensors[:10:10], m.tensors[len(m.tensors)-10:]...)
		}
		f.Add(m.header(), int64(huge))
		f.Add(m.header(), m.size())
	}
	f.Fuzz(func(t *testing.T, header []byte, size int64) {
		s, err := read(t, header, min(max(size, 0), huge))
		if err != nil {
			if strings.Contains(err.Error(), "cannot be worked with") && !strings.Contains(err.Error(), "it is damaged") {
				t.Fatal(err)
			}
			return
		}
		f, err := Fit(s, cards(8192, 24564, 100), Options{})
		if err != nil && s.trained >= step {
			t.Fatal(err)
		}
		few, many := s.costs(step, Options{}), s.costs(maxWindow, Options{})
		if many.total() < few.total() || f.Window > s.trained || f.Window%step != 0 {
			t.Fatalf("%+v, %+v, %+v", few, many, f)
		}
	})
}
