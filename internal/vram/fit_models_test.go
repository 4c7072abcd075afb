package vram

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gguf "github.com/gpustack/gguf-parser-go"
)

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
	if err := os.WriteFile(path, m.header(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, m.size()); err != nil {
		t.Fatal(err)
	}
	return path
}

func (m model) shape(t testing.TB) Shape {
	t.Helper()
	s, err := ReadShape(t.Context(), m.file(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
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
