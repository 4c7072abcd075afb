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
	"slices"
	"strings"
	"testing"

	gguf "github.com/gpustack/gguf-parser-go"
	"pgregory.net/rapid"
)

// small is a model with two layers.
func small() model { return dense("llama", 2, 512, 8, 2, 64, 1024, 1000, false) }

func read(t *testing.T, header []byte, size int64) (Shape, error) {
	t.Helper()
	return ReadShapeAt(t.Context(), bytes.NewReader(header), size)
}

func TestReadShape(t *testing.T) {
	m := llama()
	m.values["tokenizer.ggml.tokens"] = make([]string, 128256)
	m.values["tokenizer.chat_template"] = strings.Repeat("{{ template }}", 5000)
	m.values["general.type"], m.values["rope.freq_base"] = "model", float32(500000)
	delete(m.values, "vocab_size")
	s := m.shape(t)
	if s.Architecture != "llama" || s.Trained != 131072 || s.Layers != 32 || s.Weights != 4912898304 || s.logits != 128256+4096 {
		t.Errorf("%+v", s)
	}
	other, err := read(t, m.header(), m.size())
	if a, b := fit(t, s, cards(8000), Options{}), fit(t, other, cards(8000), Options{}); err != nil || a.Window != b.Window {
		t.Errorf("from a reader %d tokens, from a file %d (%v)", b.Window, a.Window, err)
	}
	far := small()
	far.values["context_length"] = uint64(1 << 40)
	if s := far.shape(t); s.Trained != mostWindow {
		t.Errorf("made for 2^40 tokens: %d, want %d", s.Trained, mostWindow)
	}
	last := hybrid() // the last layer tells nothing of attention: another one is looked at
	last.tensors = slices.DeleteFunc(last.tensors, func(m made) bool { return m.name == "blk.47.attn_q.weight" })
	if got, want := last.need(t, 131072, Options{}).Compute, hybrid().need(t, 131072, Options{}).Compute; got != want {
		t.Errorf("without attention in its last layer: %d bytes to compute, want %d", got, want)
	}
	renamed := gptOSS()
	renamed.arch = "gptoss"
	if got, want := renamed.need(t, 8192, Options{}), gptOSS().need(t, 8192, Options{}); got != want {
		t.Errorf("by the name Ollama gives it: %+v, want %+v", got, want)
	}
	seeing := gemma()
	seeing.tensors = append([]made{{"v.blk.0.attn_q.weight", f32, []uint64{1024, 1024}}, {"mm.input_projection.weight", f32, []uint64{1024}}}, seeing.tensors...)
	got, want := seeing.need(t, 8192, Options{}), gemma().need(t, 8192, Options{})
	if got.Weights != want.Weights+4*(1024*1024+1024) || got.KV != want.KV || got.Compute != want.Compute {
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
	if err != nil || s.Weights != whole.shape(t).Weights || s.Layers != 2 {
		t.Errorf("%+v, %v", s, err)
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
		if _, err := ReadShape(t.Context(), n); err == nil || !strings.Contains(err.Error(), "parts") {
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
	none := small()
	none.tensors = none.tensors[:3]
	for want, m := range map[string]model{
		`architecture "foobar"`:               named("foobar"),
		`architecture "clip"`:                 named("clip"),
		`architecture "deepseek4"`:            named("deepseek4"),
		"names no architecture":               named(""),
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
		"general.alignment":                   with("general.alignment", 0),
		"type 4, which is not known":          tensor("a", 4, 32),
		"type 999, which is not known":        tensor("a", 999, 32),
		"too large to be real":                tensor("a", f32, 1<<31, 1<<31, 1<<31, 1<<31),
		"0 dimensions":                        tensor("a", f32),
		"5 dimensions":                        tensor("a", f32, 1, 1, 1, 1, 1),
		"no layers":                           none,
		"a name of 2000 bytes":                with(strings.Repeat("x", 2000-len("llama.")), 1),
	} {
		if s, err := read(t, m.header(), 1<<50); err == nil || !strings.Contains(err.Error(), want) {
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
	nested := begin(uint32(9))
	for range 1 << 20 {
		nested = append(nested, raw(uint32(9), uint64(1))...)
	}
	for want, header := range map[string][]byte{
		"not a model":                 raw("GGML", uint32(3), uint64(0), uint64(0)),
		"another byte order":          raw("GGUF", uint32(3<<24), uint64(0), uint64(0)),
		"GGUF version 1 is not":       raw("GGUF", uint32(1), uint64(0), uint64(0)),
		"GGUF version 4 is not":       raw("GGUF", uint32(4), uint64(0), uint64(0)),
		"names no":                    raw("GGUF", uint32(3), uint64(0), uint64(0)),
		"18446744073709551615 tensor": raw("GGUF", uint32(3), uint64(math.MaxUint64), uint64(0)),
		"70000 values":                raw("GGUF", uint32(3), uint64(0), uint64(70000)),
		"larger than":                 begin(uint32(8), uint64(math.MaxUint64)),
		"larger than the 256":         begin(uint32(9), uint32(8), uint64(1), uint64(1<<62)),
		"a list of 4611686018427387":  begin(uint32(9), uint32(0), uint64(1<<62)),
		"larger than the 256 MiB":     begin(uint32(9), uint32(0), uint64(1<<28)),
		"values of type 9":            nested,
		"values of type 13":           begin(uint32(9), uint32(13), uint64(5)),
		"a value of type 13":          begin(uint32(13)),
		"a value of type 4294967295":  begin(uint32(math.MaxUint32)),
	} {
		if s, err := read(t, header, 1<<50); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", want, s, err)
		}
	}
	for _, size := range []int64{-1, 0, 3, 4, 23} {
		if _, err := read(t, raw("GGUF", uint32(3), uint64(0), uint64(0)), size); err == nil {
			t.Errorf("a model of %d bytes is accepted", size)
		}
	}
}

// endless is a header that never ends: a list of texts without a letter.
type endless struct{ begin []byte }

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(e.begin)) {
		copy(p, e.begin[off:])
	}
	return len(p), nil
}

func TestEndlessHeader(t *testing.T) {
	begin := raw("GGUF", uint32(3), uint64(0), uint64(1), uint64(1), "a", uint32(9), uint32(8), uint64(math.MaxUint64))
	_, err := ReadShapeAt(t.Context(), endless{begin}, math.MaxInt64)
	if err == nil || !strings.Contains(err.Error(), "larger than the 256 MiB") && !strings.Contains(err.Error(), "not readable within") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadShapeAt(ctx, endless{begin}, math.MaxInt64); !errors.Is(err, context.Canceled) {
		t.Errorf("given up before it began: %v", err)
	}
	h := header{values: map[string]value{}} // and nothing goes on reading behind the back of who gave up
	if err := h.read(ctx, endless{begin}, math.MaxInt64); !errors.Is(err, context.Canceled) {
		t.Errorf("reading went on: %v", err)
	}
}

// stuckReader is a drive that does not answer.
type stuckReader struct{ asked, end chan struct{} }

func (s stuckReader) ReadAt([]byte, int64) (int, error) {
	close(s.asked)
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

func TestStuckReader(t *testing.T) {
	s := stuckReader{make(chan struct{}), make(chan struct{})}
	defer close(s.end)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.asked; cancel() }()
	if _, err := ReadShapeAt(ctx, s, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { panic("no reader") }

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
	if _, err := ReadShapeAt(t.Context(), broken{}, 100); err == nil || !strings.Contains(err.Error(), "no reader") {
		t.Errorf("a reader that panics: %v", err)
	}
	for _, path := range []string{t.TempDir(), "/dev/null", filepath.Join(t.TempDir(), "none.gguf")} {
		if _, err := ReadShape(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A shape the library panics on is an error, whoever asks.
func TestPanicsOfTheLibrary(t *testing.T) {
	s := Shape{Architecture: "llama", Trained: 4096, Layers: 1, Weights: 1, blocks: []uint64{1}, file: &gguf.GGUFFile{}}
	if f, err := Fit(s, cards(8192), Options{}); err == nil || !strings.Contains(err.Error(), "cannot be worked with") {
		t.Errorf("%+v, %v", f, err)
	}
	if use, err := s.Need(4096, Options{}); err == nil {
		t.Errorf("%+v", use)
	}
	if bytes, spills := Spills(s, 4096, cards(8192), Options{}); spills {
		t.Errorf("%d bytes spill", bytes)
	}
}

// Any numbers the checks let through make an answer: no panic of the library's,
// and no sum that runs over, which would make a longer window cheaper.
func TestAnyNumbers(t *testing.T) {
	answers := 0
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
			case kind < 70:
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
		s, err := ReadShapeAt(t.Context(), bytes.NewReader(m.header()), 1<<50)
		if err != nil {
			if strings.Contains(err.Error(), "cannot be worked with") {
				t.Fatal(err)
			}
			return
		}
		answers++
		o := Options{FlashAttention: rapid.Bool().Draw(t, "flash"), Sequences: rapid.IntRange(1, 64).Draw(t, "sequences"), Batch: 8192, KeyType: "f32", ValueType: "f32"}
		o, _ = o.complete()
		previous := costs{layers: make([]Use, s.Layers)}
		for window := step; window <= mostWindow; window *= 16 {
			var c costs
			if err := guarded(func() (err error) { c, err = s.costs(window, o); return err }); err != nil {
				t.Fatal(err)
			}
			if c.alone < previous.alone || c.shared < previous.shared {
				t.Fatalf("computing takes less with %d tokens: %d and %d, %d and %d", window, previous.alone, previous.shared, c.alone, c.shared)
			}
			for i, layer := range c.layers {
				if layer.Total() < previous.layers[i].Total() {
					t.Fatalf("layer %d takes less with %d tokens: %+v, %+v", i, window, previous.layers[i], layer)
				}
			}
			previous = c
		}
	})
}

// Whatever a file holds, there is an answer or an error; and none of the errors is
// a panic of the library's: the checks before it let nothing through.
func FuzzReadShape(f *testing.F) {
	for _, m := range []model{small(), llama(), gemma(), gptOSS(), latentModel(), hybrid()} {
		if len(m.tensors) > 30 {
			m.tensors = append(m.tensors[:10:10], m.tensors[len(m.tensors)-10:]...)
		}
		f.Add(m.header(), int64(1<<50))
		f.Add(m.header(), m.size())
	}
	f.Fuzz(func(t *testing.T, header []byte, size int64) {
		s, err := ReadShapeAt(t.Context(), bytes.NewReader(header), size)
		if err != nil {
			if strings.Contains(err.Error(), "cannot be worked with") {
				t.Fatal(err)
			}
			return
		}
		for _, o := range []Options{{}, {FlashAttention: true, Sequences: 64, KeyType: "q4_0", ValueType: "q4_0", Batch: 8192}} {
			fitting, err := Fit(s, cards(8192, 24564, 100), o)
			if err != nil && s.Trained >= step {
				t.Fatal(err)
			}
			few, err := s.Need(step, o)
			many, wrong := s.Need(mostWindow, o)
			if err != nil || wrong != nil {
				continue // larger than any machine
			}
			if many.Total() < few.Total() || fitting.Window > s.Trained || fitting.Window%step != 0 {
				t.Fatalf("%+v, %+v, %+v", few, many, fitting)
			}
			if bytes, spills := Spills(s, fitting.Window, cards(8192, 24564, 100), o); spills && fitting.Window > 0 {
				t.Fatalf("%d tokens fit, %d bytes spill", fitting.Window, bytes)
			}
		}
	})
}
