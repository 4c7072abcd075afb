package test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Sizes of the random model: large enough for llama.cpp to take, small enough
// to read a long prompt on one core.
const (
	ggufWidth   = 16 // of the embedding and of its one head
	ggufLayers  = 2
	ggufContext = 131072
)

// Value types of a GGUF file's metadata.
const (
	ggufUint32  uint32 = 4
	ggufInt32   uint32 = 5
	ggufFloat32 uint32 = 6
	ggufString  uint32 = 8
	ggufArray   uint32 = 9
)

// Kinds of tokens in a GGUF file.
const (
	ggufNormal  int32 = 1
	ggufControl int32 = 3
)

// gguf collects a file in the format of llama.cpp's models.
type gguf struct {
	meta, info, data bytes.Buffer
	keys, tensors    uint64
	random           *rand.Rand
}

// writeGGUF writes a random model of the llama architecture. Its tokens are the
// 256 bytes, the words of corpus, and the control tokens; the first of these
// begins a prompt where the template says so, the last ends an answer.
func writeGGUF(t *testing.T, path, template, corpus string, control ...string) {
	t.Helper()
	tokens, kinds := vocabulary(corpus, control)
	g := &gguf{random: rand.New(rand.NewPCG(1, 2))}
	g.str("general.architecture", "llama")
	g.str("general.name", "random")
	g.number("llama.context_length", ggufContext)
	g.number("llama.embedding_length", ggufWidth)
	g.number("llama.block_count", ggufLayers)
	g.number("llama.feed_forward_length", ggufWidth)
	g.number("llama.attention.head_count", 1)
	g.key("llama.attention.layer_norm_rms_epsilon", ggufFloat32)
	write(&g.meta, math.Float32bits(1e-5))
	g.str("tokenizer.ggml.model", "rwkv") // the longest token that fits: it needs no merges
	g.key("tokenizer.ggml.tokens", ggufArray)
	write(&g.meta, ggufString, uint64(len(tokens)))
	for _, token := range tokens {
		write(&g.meta, uint64(len(token)), []byte(token))
	}
	g.key("tokenizer.ggml.token_type", ggufArray)
	write(&g.meta, ggufInt32, uint64(len(kinds)), kinds)
	g.number("tokenizer.ggml.bos_token_id", uint32(slices.Index(tokens, control[0])))
	g.number("tokenizer.ggml.eos_token_id", uint32(len(tokens)-1))
	g.str("tokenizer.chat_template", template)

	g.tensor("token_embd.weight", ggufWidth, len(tokens))
	g.tensor("output_norm.weight", ggufWidth)
	for i := range ggufLayers {
		for _, name := range []string{"attn_norm", "ffn_norm"} {
			g.tensor(fmt.Sprintf("blk.%d.%s.weight", i, name), ggufWidth)
		}
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
			g.tensor(fmt.Sprintf("blk.%d.%s.weight", i, name), ggufWidth, ggufWidth)
		}
	}

	var file bytes.Buffer
	write(&file, []byte("GGUF"), uint32(3), g.tensors, g.keys, g.meta.Bytes(), g.info.Bytes())
	write(&file, make([]byte, (32-file.Len()%32)%32), g.data.Bytes())
	must(t, os.WriteFile(path, file.Bytes(), 0o600))
}

// vocabulary is the bytes, the words of corpus with the blank before them, its
// runs of marks, and the control tokens, written as llama.cpp's tokenizer of
// that kind wants it: \x20 is a byte, so that no token holds a backslash.
func vocabulary(corpus string, control []string) (tokens []string, kinds []int32) {
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf(`\x%02x`, b))
	}
	words := regexp.MustCompile(` ?[A-Za-z]{2,}|[!-/:-@_{-~]{2,4}`).FindAllString(corpus, -1)
	slices.Sort(words)
	tokens = append(append(tokens, slices.Compact(words)...), control...)
	kinds = slices.Repeat([]int32{ggufNormal}, len(tokens))
	for i := range control {
		kinds[len(kinds)-1-i] = ggufControl
	}
	return tokens, kinds
}

func write(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // a buffer takes all
	}
}

func (g *gguf) key(name string, kind uint32) {
	g.keys++
	write(&g.meta, uint64(len(name)), []byte(name), kind)
}

func (g *gguf) str(name, value string) {
	g.key(name, ggufString)
	write(&g.meta, uint64(len(value)), []byte(value))
}

func (g *gguf) number(name string, value uint32) {
	g.key(name, ggufUint32)
	write(&g.meta, value)
}

// tensor adds 32-bit floats: ones where it is a norm, else random.
func (g *gguf) tensor(name string, dims ...int) {
	g.tensors++
	write(&g.info, uint64(len(name)), []byte(name), uint32(len(dims)))
	size := 1
	for _, d := range dims {
		size *= d
		write(&g.info, uint64(d))
	}
	write(&g.info, uint32(0), uint64(g.data.Len())) // 0 = 32-bit floats; a multiple of 32 bytes, as it must be
	values := make([]float32, size)
	for i := range values {
		if values[i] = 1; !strings.Contains(name, "norm") {
			values[i] = float32(g.random.NormFloat64()) / 4
		}
	}
	write(&g.data, values)
}
