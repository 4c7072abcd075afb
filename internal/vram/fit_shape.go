package vram

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"
)

// mostBlocks is beyond the layers of any model; servers refuse more than 512.
const mostBlocks = 1 << 10

// mostWindow is the longest window that is thought of, in tokens.
const mostWindow = 1 << 24

// Shape is what the header of a model file says about the memory it takes. It is
// made by ReadShape and never changes. The zero value fits nowhere.
type Shape struct {
	Architecture string `json:"architecture"`
	Trained      int    `json:"trained"` // the window it was made for, in tokens
	Layers       int    `json:"layers"`
	Weights      uint64 `json:"weights"` // bytes of all of them

	blocks []uint64 // bytes of the weights of each layer
	output uint64   // bytes of what follows the layers, and of a table of words that serves there too
	host   uint64   // bytes of the table of words, which stays with the processor
	rest   uint64   // bytes of what stands beside the layers: eyes, ears, rope factors
	logits uint64   // vocabulary and embedding together: numbers per token behind the last layer
	// file is as much of the header as the library needs to work out a window.
	file *gguf.GGUFFile
}

// known are the architectures whose window is worked out here: they write text
// from left to right, and what they keep of it is what the library counts. Missing
// on purpose are those with a second cache (deepseek32, deepseek4, glm-dsa).
var known = strings.Fields(`afmoe apertus arcee arctic arwkv7 baichuan bailingmoe bailingmoe2 bitnet bloom chameleon chatglm
	codeshell cogvlm cohere2 cohere2moe command-r dbrx deci deepseek deepseek2 dots1 ernie4_5 ernie4_5-moe exaone exaone-moe exaone4
	falcon falcon-h1 gemma gemma2 gemma3 gemma3n gemma4 glm4 glm4moe gpt-oss gpt2 gptj gptneox granite granitehybrid granitemoe
	grok grovemoe hunyuan-dense hunyuan-moe hunyuan_vl hy_v3 internlm2 jais jais2 jamba kimi-linear laguna lfm2 lfm2moe llama llama4
	maincoder mamba mamba2 mellum mimo2 minicpm minicpm3 minimax-m2 mistral3 mistral4 mpt nemotron nemotron_h nemotron_h_moe olmo
	olmo2 olmoe openelm orion paddleocr pangu-embedded phi2 phi3 phimoe plamo plamo2 plamo3 plm qwen qwen2 qwen2moe qwen2vl
	qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3vl qwen3vlmoe refact rwkv6 rwkv6qwen2 rwkv7 seed_oss smallthinker smollm3
	stablelm starcoder starcoder2 step35 xverse`)

// sameAs are names some servers give to architectures known under another one.
var sameAs = map[string]string{"gptoss": "gpt-oss", "qwen25vl": "qwen2vl"}

// used are the values the library is given, and the most each may be. No product
// of them that it forms passes 64 bits, nor 32 where it counts in 32.
var used = map[string]uint64{
	"block_count": mostBlocks, "context_length": 1 << 40, "embedding_length": 1 << 18, "vocab_size": 1 << 24,
	"expert_count": 1 << 14, "expert_used_count": 1 << 14, "nextn_predict_layers": mostBlocks, "full_attention_interval": mostBlocks,
	"attention.head_count": 1 << 12, "attention.head_count_kv": 1 << 12, "attention.key_length": 1 << 13, "attention.value_length": 1 << 13,
	"attention.key_length_swa": 1 << 13, "attention.value_length_swa": 1 << 13, "attention.key_length_mla": 1 << 13, "attention.value_length_mla": 1 << 13,
	"attention.sliding_window": 1 << 24, "attention.sliding_window_pattern": mostBlocks, "attention.shared_kv_layers": mostBlocks,
	"attention.kv_lora_rank": 1 << 13, "rope.dimension_count": 1 << 13,
	"ssm.conv_kernel": 64, "ssm.inner_size": 1 << 18, "ssm.state_size": 1 << 12, "ssm.group_count": 1 << 9,
	"shortconv.l_cache": 64, "kda.head_dim": 1 << 12, "wkv.head_size": 1 << 12, "token_shift_count": 16,
}

// newShape makes a shape of a header.
func newShape(h *header) (Shape, error) {
	s := Shape{Architecture: h.values["general.architecture"].text}
	name := s.Architecture
	if other, ok := sameAs[name]; ok {
		s.Architecture = other
	}
	switch kind := h.values["general.type"].text; {
	case name == "":
		return Shape{}, errors.New("it names no architecture")
	case kind != "" && kind != "model":
		return Shape{}, fmt.Errorf("it is a part that goes with a model (%q), not a model", kind)
	case !slices.Contains(known, s.Architecture):
		return Shape{}, fmt.Errorf("what a window takes is not known for the architecture %q; set the window yourself", name)
	case h.files == 1 && h.values["split.count"].n > 1:
		return Shape{}, fmt.Errorf("it is one of %d parts; name it as it was, NAME-00001-of-%05d.gguf, with the others beside it", h.values["split.count"].n, h.values["split.count"].n)
	}
	values, err := h.used(name)
	if err != nil {
		return Shape{}, err
	}
	if values["attention.causal"].n == 0 && values["attention.causal"].whole || values["pooling_type"].n > 2 {
		return Shape{}, errors.New("it does not write text, it makes embeddings")
	}
	s.Layers, s.Trained = int(values["block_count"].n), int(min(values["context_length"].n, mostWindow))
	if err := s.weigh(h.tensors); err != nil {
		return Shape{}, err
	}
	latent(values)
	s.file = &gguf.GGUFFile{TensorInfos: telling(h.tensors)}
	s.file.Header.MetadataKV = metadata(s.Architecture, values)
	vocabulary := values["vocab_size"].n
	if vocabulary == 0 {
		vocabulary = min(h.values["tokenizer.ggml.tokens"].n, used["vocab_size"])
	}
	s.logits = vocabulary + values["embedding_length"].n
	return s, guarded(func() error { return s.plausible() })
}

// used picks the values that count, by their name without the architecture, and
// checks them.
func (h *header) used(architecture string) (map[string]value, error) {
	values := map[string]value{}
	for key, v := range h.values {
		short, ok := strings.CutPrefix(key, architecture+".")
		limit, counts := used[short]
		if !ok || !counts && short != "attention.causal" && short != "pooling_type" {
			continue
		}
		pattern := short == "attention.sliding_window_pattern"
		if counts && !v.within(limit, pattern && v.isList) {
			return nil, fmt.Errorf("its %s cannot be right", key)
		}
		if v.isList && !pattern && short != "attention.head_count_kv" {
			v = value{kind: gguf.GGUFMetadataValueTypeUint64, n: slices.Max(v.list), whole: true} // the largest stands for all
		}
		values[short] = v
	}
	recurrent := []string{"ssm.conv_kernel", "wkv.head_size", "shortconv.l_cache", "kda.head_dim"}
	for _, key := range []string{"block_count", "context_length", "embedding_length"} {
		if values[key].n == 0 {
			return nil, fmt.Errorf("it lacks %s.%s", architecture, key)
		}
	}
	remembers := slices.ContainsFunc(recurrent, func(key string) bool { return values[key].n > 0 })
	if values["attention.head_count"].n == 0 && !remembers {
		return nil, fmt.Errorf("it lacks %s.attention.head_count", architecture)
	}
	if values["full_attention_interval"].n > 1 && !remembers {
		return nil, fmt.Errorf("it lacks %s.ssm.conv_kernel", architecture)
	}
	return values, nil
}

// within tells that v is a number, or a list of such, up to limit; or of truths.
func (v value) within(limit uint64, truths bool) bool {
	if !v.whole || v.kind == gguf.GGUFMetadataValueTypeBool && !truths {
		return false
	}
	if v.isList {
		return len(v.list) > 0 && slices.Max(v.list) <= limit
	}
	return v.n <= limit
}

// latent makes values say what a server keeps of a model with latent attention
// (MLA): one key per layer and token, as wide as its compressed form and the part
// for the position, and no values. The library takes the widths they unfold to.
// Files from before servers could do so have no *_mla; those unfold all of it.
func latent(values map[string]value) {
	rank, heads := values["attention.kv_lora_rank"].n, values["attention.head_count_kv"]
	if rank == 0 || values["attention.key_length_mla"].n == 0 && (heads.isList || heads.n != 1) {
		return
	}
	number := func(n uint64) value { return value{kind: gguf.GGUFMetadataValueTypeUint64, n: n, whole: true} }
	values["attention.key_length"] = number(rank + values["rope.dimension_count"].n)
	values["attention.value_length"] = number(0)
	delete(values, "attention.key_length_mla")
	delete(values, "attention.value_length_mla")
	if !heads.isList {
		values["attention.head_count_kv"] = number(1)
		return
	}
	one := slices.Clone(heads.list) // a layer with no head stays without: it remembers in another way
	for i := range one {
		one[i] = min(one[i], 1)
	}
	heads.list = one
	values["attention.head_count_kv"] = heads
}

// metadata writes values as the library reads them.
func metadata(architecture string, values map[string]value) (kvs gguf.GGUFMetadataKVs) {
	add := func(key string, kind gguf.GGUFMetadataValueType, v any) {
		kvs = append(kvs, gguf.GGUFMetadataKV{Key: key, ValueType: kind, Value: v})
	}
	add("general.architecture", gguf.GGUFMetadataValueTypeString, architecture)
	for _, short := range slices.Sorted(maps.Keys(values)) {
		if _, counts := used[short]; !counts {
			continue
		}
		v, key := values[short], architecture+"."+short
		if !v.isList {
			add(key, gguf.GGUFMetadataValueTypeUint64, v.n)
			continue
		}
		list := gguf.GGUFMetadataKVArrayValue{Type: gguf.GGUFMetadataValueTypeUint64, Len: uint64(len(v.list))}
		truths := v.kind == gguf.GGUFMetadataValueTypeBool || short == "attention.sliding_window_pattern"
		if truths {
			list.Type = gguf.GGUFMetadataValueTypeBool
		}
		for _, n := range v.list {
			if truths {
				list.Array = append(list.Array, n != 0)
			} else {
				list.Array = append(list.Array, n)
			}
		}
		add(key, gguf.GGUFMetadataValueTypeArray, list)
	}
	return kvs
}

// weigh sums up the weights by where they go.
func (s *Shape) weigh(tensors []tensor) error {
	s.blocks = make([]uint64, s.Layers)
	tied, layered := true, false
	for _, t := range tensors {
		s.Weights += t.bytes
		n, ok := block(t.info.Name)
		first, _, _ := strings.Cut(t.info.Name, ".")
		switch {
		case ok && n >= s.Layers:
			return fmt.Errorf("tensor %q is beyond its %d layers", t.info.Name, s.Layers)
		case ok:
			layered = true
			s.blocks[n] += t.bytes
		case strings.HasPrefix(first, "token_") || strings.HasPrefix(first, "position_"):
			s.host += t.bytes
		case first == "output" || strings.HasPrefix(first, "output_"):
			tied = tied && t.info.Name != "output.weight"
			s.output += t.bytes
		default:
			s.rest += t.bytes
		}
	}
	if !layered {
		return errors.New("it has no layers: is it a file that goes with a model, for pictures or as an adapter?")
	}
	if tied {
		s.output += s.host
	}
	return nil
}

// telling are the tensors by which the library works out what computing takes:
// those around the layers and those of one layer, the last with attention.
func telling(tensors []tensor) (some gguf.GGUFTensorInfos) {
	chosen, attends := -1, false
	for _, t := range tensors {
		n, ok := block(t.info.Name)
		query := strings.Contains(t.info.Name, ".attn_q.") || strings.Contains(t.info.Name, ".attn_qkv.") || strings.Contains(t.info.Name, ".attn_q_b.")
		if ok && (query && !attends || query == attends && n > chosen) {
			chosen, attends = n, query
		}
	}
	for _, t := range tensors {
		n, ok := block(t.info.Name)
		if ok && n == chosen || strings.HasPrefix(t.info.Name, "token_") || strings.HasPrefix(t.info.Name, "output") {
			some = append(some, t.info)
		}
	}
	return some
}

// plausible asks the library once, so that a shape it cannot work with is not one.
func (s *Shape) plausible() error {
	if a := s.file.Architecture(); a.Type != "model" || !a.AttentionCausal || a.BlockCount != uint64(s.Layers) {
		return errors.New("it is not a language model")
	}
	o, err := Options{}.complete()
	if err != nil {
		return err
	}
	_, err = s.costs(step, o)
	return err
}
