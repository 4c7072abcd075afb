package vram

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"
	"pgregory.net/rapid"

	"reverie/internal/test/expect"
)

const mib = 1 << 20

// near tells that got is within share of want.
func near(got uint64, want, share float64) bool { return math.Abs(float64(got)-want) <= want*share }

// What the estimate is held against was measured, with llama.cpp on GPUs of NVIDIA's; in MiB.
func TestCostsAsMeasured(t *testing.T) {
	for _, c := range []struct {
		name                 string
		model                model
		window               int
		weights, kv, compute float64 // 0 = not measured
		within               float64
	}{
		{"Llama 3.1 8B", llama(), 8192, 4403.49, 1024, 560, .001},
		{"Llama 3.1 8B, 32768", llama(), 32768, 4403.49, 4096, 2144, .001},
		{"Llama 3.1 8B, 131072", llama(), 131072, 4403.49, 16384, 8480, .001},
		{"gpt-oss 20B", gptOSS(), 131072, 10949.4, 3087, 0, .01},
		{"Gemma 3 12B", gemma(), 8192, 6956.32, 992, 0, .001},
	} {
		use := c.model.shape(t).costs(c.window, 1)[0]
		for what, x := range map[string][2]float64{"weights": {float64(use.weights), c.weights}, "window": {float64(use.cache), c.kv}, "compute": {float64(use.compute), c.compute}} {
			if x[1] > 0 && !near(uint64(x[0]), x[1]*mib, c.within) {
				t.Errorf("%s: %.2f MiB of %s, want %.2f", c.name, x[0]/mib, what, x[1])
			}
		}
	}
}

// cards is a report of GPUs with so much free, in MiB.
func cards(free ...uint64) Report {
	f := findings{}
	for i, n := range free {
		f.devices = append(f.devices, Device{Vendor: "nvidia", Name: fmt.Sprintf("GPU %d", i), ID: fmt.Sprint(i), Total: n * mib, Free: n * mib, FreeKnown: true})
	}
	return f.conclude(time.Unix(0, 0))
}

func fit(t expect.T, s Shape, r Report, o Options) Fitting { return expect.Must(Fit(s, r, o))(t) }

// Windows as they have been since the estimate was held against measured sizes.
func TestFitOnCards(t *testing.T) {
	sets := [][]uint64{{8000}, {12000}, {16000}, {24564}, {48000}, {8000, 8000}, {12000, 4500}, {9000, 9000, 9000, 9000}}
	for _, c := range []struct {
		name  string
		model model
		want  []int
	}{
		{"llama", llama(), []int{10752, 32000, 52992, 97280, 131072, 31744, 32000, 59904}},
		{"gemma", gemma(), []int{0, 31744, 73472, 131072, 131072, 35328, 31744, 93440}},
		{"gpt-oss", gptOSS(), []int{0, 0, 23296, 78848, 131072, 6144, 8192, 33024}},
	} {
		s := c.model.shape(t)
		var got []int
		for _, set := range sets {
			got = append(got, fit(t, s, cards(set...), Options{}).Window)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The window is the longest one: it fits, and the next does not; more room never takes less.
func TestFitIsTheLongest(t *testing.T) {
	for name, m := range map[string]model{"gemma": gemma(), "gpt-oss": gptOSS()} {
		s := m.shape(t)
		rapid.Check(t, func(t *rapid.T) {
			free := rapid.SliceOfN(rapid.Uint64Range(500, 30000), 1, 5).Draw(t, "free")
			o := Options{Beside: rapid.Uint64Range(0, 2<<30).Draw(t, "beside")}
			f := fit(t, s, cards(free...), o)
			if f.Window%step != 0 || f.Window > s.trained || f.Reason == "" {
				t.Fatalf("not an answer: %+v", f)
			}
			room, _, _ := rooms(cards(free...), 0)
			if f.Window > 0 && !s.fits(f.Window, room, o.Beside) {
				t.Fatalf("%s: %d tokens do not fit", name, f.Window)
			}
			if next := f.Window + step; next <= s.trained && s.fits(next, room, o.Beside) {
				t.Fatalf("%s: %d tokens, but %d fit too", name, f.Window, next)
			}
			free[0] += 1000
			// Layers are split by the room of each, as llama.cpp does it: with more room a layer may come to one
			// that is full. That costs 2 % of the window at most in 2,100 draws.
			if larger := fit(t, s, cards(append(free, 8000)...), o); larger.Window < f.Window*95/100 {
				t.Fatalf("%s: %d tokens fit, with more room %d", name, f.Window, larger.Window)
			}
		})
	}
}

func TestSeveralDevices(t *testing.T) {
	s := llama().shape(t)
	// Two unequal ones together hold what neither does.
	if f := fit(t, s, cards(4500, 9000), Options{}); f.Window <= fit(t, s, cards(9000), Options{}).Window {
		t.Errorf("two unequal: %+v", f)
	}
	if with, without := fit(t, s, cards(9000), Options{Beside: 1000 * mib}), fit(t, s, cards(9000), Options{}); with.Window >= without.Window {
		t.Errorf("with 1000 MiB beside: %+v, without %+v", with, without)
	}
	// Crumbs do not add up: the overhead and what computing takes are needed on each.
	if f := fit(t, s, cards(1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400), Options{}); f.Window != 0 || !strings.Contains(f.Reason, "no window fits") {
		t.Errorf("crumbs: %+v", f)
	}
	// What does not count is not used, and what is free counts, not what there is.
	r := cards(24000, 24000)
	r.Devices[0].Counted = false
	r.Devices[1].Free = 8000 * mib
	if got, want := fit(t, s, r, Options{}).Window, fit(t, s, cards(8000), Options{}).Window; got != want || got == 0 {
		t.Errorf("one counted, partly free: %d tokens, want %d", got, want)
	}
	// What the server holds of this model already will be free.
	if got, want := fit(t, s, r, Options{Held: 6000 * mib}).Window, fit(t, s, cards(14000), Options{}).Window; got != want {
		t.Errorf("holding the model already: %d tokens, want %d", got, want)
	}
	if got, want := fit(t, s, r, Options{Held: math.MaxUint64}).Window, fit(t, s, cards(24000), Options{}).Window; got != want {
		t.Errorf("holding more than is taken: %d tokens, want %d", got, want)
	}
	// What nobody tells is taken to be free, and said so.
	r.Devices[1].FreeKnown = false
	if f := fit(t, s, r, Options{}); !strings.Contains(f.Reason, "does not tell") {
		t.Errorf("free not known: %+v", f)
	}
	for free, want := range map[uint64]uint64{12000: 12000 - 2048, 100000: 95000} {
		shared := cards(free)
		shared.Devices[0].Unified = true
		if got, _, _ := rooms(shared, 0); got[0] != want*mib {
			t.Errorf("%d MiB shared with the processor: %d bytes of room, want %d MiB", free, got[0], want)
		}
	}
	if got, _, _ := rooms(cards(100000, 12000), 0); got[0] != 95000*mib || got[1] != (12000-1024)*mib {
		t.Errorf("room %d", got)
	}
}

func TestFitSaysWhatIsWrong(t *testing.T) {
	s := llama().shape(t)
	for _, c := range []struct {
		shape Shape
		r     Report
		o     Options
		want  string
	}{
		{s, Report{Reason: "no driver"}, Options{}, "unknown: no driver"},
		{s, Report{State: Known, Reason: "all slices"}, Options{}, "no GPU counts"},
		{Shape{}, cards(8192), Options{}, "does not say how long"},
	} {
		if f, err := Fit(c.shape, c.r, c.o); err == nil || !strings.Contains(err.Error(), c.want) || f.Window != 0 {
			t.Errorf("%+v: %+v, %v; want %q", c.o, f, err, c.want)
		}
	}
	if f := fit(t, s, cards(140000), Options{}); f.Window != 131072 || !strings.Contains(f.Reason, "made for no more") {
		t.Errorf("more than enough: %+v", f)
	}
}

// small is a model with two layers.
func small() model { return dense("llama", 2, 512, 8, 2, 64, 1024, 1000, false) }

// A model in parts is read whole, whichever part is named.
func TestReadShapeInParts(t *testing.T) {
	whole, dir := small(), t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("small-%05d-of-00003.gguf", i)) }
	for i := range 3 {
		part := model{arch: "llama", values: map[string]any{"split.no": i, "split.count": 3}}
		if i == 0 {
			part.values = small().values
			part.values["split.count"] = 3
		}
		for j, tensor := range whole.tensors {
			if j%3 == i {
				part.tensors = append(part.tensors, tensor)
			}
		}
		expect.OK(t, os.Rename(part.file(t), name(i+1)))
	}
	s, err := ReadShape(name(2))
	if err != nil || s.costs(8192, 1)[0] != whole.shape(t).costs(8192, 1)[0] || s.trained != 131072 {
		t.Errorf("%+v, %v", s, err)
	}
	expect.OK(t, os.Remove(name(3)))
	if _, err := ReadShape(name(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one part missing: %v", err)
	}
}

// TestReadShapeSaysWhatIsWrong: a file that cannot be used is an error that names it, never a panic.
func TestReadShapeSaysWhatIsWrong(t *testing.T) {
	second := small()
	second.arch = "deepseek4"
	adapter := small()
	adapter.values["general.type"] = "adapter"
	cut := small().file(t)
	expect.OK(t, os.Truncate(cut, small().size()-4096))
	text := filepath.Join(t.TempDir(), "text.gguf")
	expect.OK(t, os.WriteFile(text, bytes.Repeat([]byte("no model "), 1000), 0o600))
	pipe := filepath.Join(t.TempDir(), "pipe.gguf") // to open it would wait for ever
	expect.OK(t, syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		pipe: "not a plain file", t.TempDir(): "not a plain file", second.file(t): "set the window yourself",
		adapter.file(t): "goes with a model", cut: "downloaded to its end", text: "format GGUF",
	} {
		if _, err := ReadShape(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	header := small().header()
	rapid.Check(t, func(t *rapid.T) {
		damaged := bytes.Clone(header)
		for range rapid.IntRange(1, 4).Draw(t, "bytes") {
			damaged[rapid.IntRange(4, len(damaged)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		dir := expect.Must(os.MkdirTemp("", "model"))(t)
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "m.gguf")
		expect.OK(t, errors.Join(os.WriteFile(path, damaged, 0o600), os.Truncate(path, small().size())))
		s, err := ReadShape(path)
		if err == nil {
			_, _ = Fit(s, cards(8000), Options{})
		}
	})
}

// model is a model file of a test: a real header over weights that are not there.
type model struct {
	arch    string
	values  map[string]any // without the architecture, unless general.* or split.*
	tensors []made
}

type made struct {
	name string
	kind gguf.GGMLType
	dims dims
}

type dims []uint64

func (m *model) tensor(name string, kind gguf.GGMLType, dims ...uint64) {
	m.tensors = append(m.tensors, made{name, kind, dims})
}

// blocks adds the same tensors to each of n layers.
func (m *model) blocks(n int, each []made) {
	for i := range n {
		for _, t := range each {
			m.tensor(fmt.Sprintf("blk.%d.%s", i, t.name), t.kind, t.dims...)
		}
	}
}

const f32, q4K, q6K, q8, mxfp4 = gguf.GGMLTypeF32, gguf.GGMLTypeQ4_K, gguf.GGMLTypeQ6_K, gguf.GGMLTypeQ8_0, gguf.GGMLTypeMXFP4

// header writes the header as GGUF version 3.
func (m model) header() []byte {
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	text := func(s string) { put(uint64(len(s))); b.WriteString(s) }
	values := map[string]any{"general.architecture": m.arch}
	for key, v := range m.values {
		if !strings.HasPrefix(key, "general.") && !strings.HasPrefix(key, "split.") {
			key = m.arch + "." + key
		}
		values[key] = v
	}
	b.WriteString("GGUF")
	put(uint32(3))
	put(uint64(len(m.tensors)))
	put(uint64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text(key)
		switch v := values[key].(type) {
		case string:
			put(uint32(8))
			text(v)
		case int:
			put(uint32(4))
			put(uint32(v))
		default:
			panic(fmt.Sprintf("a value of type %T", v))
		}
	}
	var offset uint64
	for _, t := range m.tensors {
		text(t.name)
		put(uint32(len(t.dims)))
		put(t.dims)
		put(uint32(t.kind))
		put(offset)
		offset += t.bytes()
	}
	return b.Bytes()
}

func (t made) bytes() uint64 {
	n := uint64(1)
	for _, d := range t.dims {
		n *= d
	}
	trait, _ := t.kind.Trait()
	return n / max(trait.BlockSize, 1) * trait.TypeSize
}

// size is that of the whole file.
func (m model) size() int64 {
	size := int64(len(m.header())+31) / 32 * 32
	for _, t := range m.tensors {
		size += int64(t.bytes())
	}
	return size
}

// file writes the model as a file that takes no room on the disk.
func (m model) file(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	expect.OK(t, os.WriteFile(path, m.header(), 0o600))
	expect.OK(t, os.Truncate(path, m.size()))
	return path
}

func (m model) shape(t testing.TB) Shape {
	t.Helper()
	return expect.Must(ReadShape(m.file(t)))(t)
}

// finer tells the layers that the usual mix of four and six bits gives six.
func finer(layer, layers int) bool {
	return layer < layers/8 || layer >= 7*layers/8 || (layer-layers/8)%3 == 2
}

// dense is a model as most are, in the usual mix of four and six bits.
func dense(arch string, layers int, embedding, heads, kv, width, feed, words uint64, tied bool) model {
	m := model{arch: arch, values: map[string]any{
		"block_count": layers, "context_length": 131072, "embedding_length": int(embedding), "feed_forward_length": int(feed),
		"attention.head_count": int(heads), "attention.head_count_kv": int(kv), "attention.key_length": int(width),
		"attention.value_length": int(width), "vocab_size": int(words),
	}}
	if tied {
		m.tensor("token_embd.weight", q6K, embedding, words)
	} else {
		m.tensor("token_embd.weight", q4K, embedding, words)
		m.tensor("output.weight", q6K, embedding, words)
	}
	m.tensor("output_norm.weight", f32, embedding)
	for i := range layers {
		kind := q4K
		if finer(i, layers) {
			kind = q6K
		}
		for _, t := range []made{
			{"attn_norm", f32, dims{embedding}}, {"attn_q", q4K, dims{embedding, heads * width}}, {"attn_k", q4K, dims{embedding, kv * width}},
			{"attn_v", kind, dims{embedding, kv * width}}, {"attn_output", q4K, dims{heads * width, embedding}},
			{"ffn_norm", f32, dims{embedding}}, {"ffn_gate", q4K, dims{embedding, feed}}, {"ffn_up", q4K, dims{embedding, feed}}, {"ffn_down", kind, dims{feed, embedding}},
		} {
			m.tensor(fmt.Sprintf("blk.%d.%s.weight", i, t.name), t.kind, t.dims...)
		}
	}
	return m
}

// llama is Llama 3.1 8B.
func llama() model {
	m := dense("llama", 32, 4096, 32, 8, 128, 14336, 128256, false)
	m.tensor("rope_freqs.weight", f32, 64)
	return m
}

// gemma is Gemma 3 12B: five of six layers look back 1024 tokens only.
func gemma() model {
	m := dense("gemma3", 48, 3840, 16, 8, 256, 15360, 262208, true)
	m.values["attention.sliding_window"] = 1024
	m.blocks(48, []made{{"post_attention_norm.weight", f32, dims{3840}}, {"post_ffw_norm.weight", f32, dims{3840}},
		{"attn_q_norm.weight", f32, dims{256}}, {"attn_k_norm.weight", f32, dims{256}}})
	return m
}

// gptOSS is gpt-oss 20B: every second layer looks back 128 tokens only.
func gptOSS() model {
	const embedding, words, experts = 2880, 201088, 32
	m := model{arch: "gpt-oss", values: map[string]any{
		"block_count": 24, "context_length": 131072, "embedding_length": embedding, "attention.head_count": 64, "attention.head_count_kv": 8,
		"attention.key_length": 64, "attention.value_length": 64, "attention.sliding_window": 128, "expert_count": experts, "expert_used_count": 4,
		"expert_feed_forward_length": 2880, "vocab_size": words,
	}}
	m.tensor("token_embd.weight", q8, embedding, words)
	m.tensor("output.weight", q8, embedding, words)
	m.tensor("output_norm.weight", f32, embedding)
	m.blocks(24, []made{
		{"attn_norm.weight", f32, dims{embedding}}, {"attn_q.weight", q8, dims{embedding, 4096}}, {"attn_q.bias", f32, dims{4096}},
		{"attn_k.weight", q8, dims{embedding, 512}}, {"attn_k.bias", f32, dims{512}},
		{"attn_v.weight", q8, dims{embedding, 512}}, {"attn_v.bias", f32, dims{512}}, {"attn_output.weight", q8, dims{4096, embedding}}, {"attn_output.bias", f32, dims{embedding}},
		{"attn_sinks.weight", f32, dims{64}}, {"post_attention_norm.weight", f32, dims{embedding}},
		{"ffn_gate_inp.weight", f32, dims{embedding, experts}}, {"ffn_gate_inp.bias", f32, dims{experts}},
		{"ffn_gate_exps.weight", mxfp4, dims{embedding, 2880, experts}}, {"ffn_gate_exps.bias", f32, dims{2880, experts}},
		{"ffn_up_exps.weight", mxfp4, dims{embedding, 2880, experts}}, {"ffn_up_exps.bias", f32, dims{2880, experts}},
		{"ffn_down_exps.weight", mxfp4, dims{embedding, 2880, experts}}, {"ffn_down_exps.bias", f32, dims{2880, experts}},
	})
	return m
}
