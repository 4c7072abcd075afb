package vram

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"
)

// Shape is what the headers of a model say about the memory that it takes. It is
// made by ReadShape and never changes. The zero value fits nowhere.
type Shape struct {
	trained int      // the window it was trained for, in tokens
	blocks  []uint64 // bytes of the weights of each layer
	output  uint64   // bytes of the other weights; the table of words only if it is the output as well
	logits  uint64   // vocabulary and embedding together: numbers per token behind the last layer
	heads   []uint64 // that keep something, by layer; nil = the same in all
	// A server with latent attention (MLA) keeps one compressed key for each token.
	// The library counts the keys and values that it unfolds to.
	unfolded, latent uint64
	file             *gguf.GGUFFile // what the library needs of it
}

// known are the architectures that the library counts right. Those with a second
// cache are missing: deepseek32, deepseek4, glm-dsa.
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
	"block_count": 1 << 10, "context_length": 1 << 40, "embedding_length": 1 << 18, "vocab_size": 1 << 24,
	"expert_count": 1 << 14, "expert_used_count": 1 << 14, "nextn_predict_layers": 1 << 10, "full_attention_interval": 1 << 10,
	"attention.head_count": 1 << 12, "attention.head_count_kv": 1 << 12, "attention.key_length": 1 << 13, "attention.value_length": 1 << 13,
	"attention.key_length_swa": 1 << 13, "attention.value_length_swa": 1 << 13, "attention.key_length_mla": 1 << 13,
	"attention.value_length_mla": 1 << 13, "attention.sliding_window": 1 << 24, "attention.sliding_window_pattern": 1 << 10,
	"attention.shared_kv_layers": 1 << 10, "attention.kv_lora_rank": 1 << 13, "rope.dimension_count": 1 << 13,
	"ssm.conv_kernel": 64, "ssm.inner_size": 1 << 18, "ssm.state_size": 1 << 12, "ssm.group_count": 1 << 9,
	"shortconv.l_cache": 64, "kda.head_dim": 1 << 12, "wkv.head_size": 1 << 12, "token_shift_count": 16,
}

// newShape checks what the library read, and keeps what it needs of it.
func newShape(file *gguf.GGUFFile) (s Shape, err error) {
	kvs, split := file.Header.MetadataKV, int64(0)
	text := func(key string) string { kv, _ := kvs.Get(key); text, _ := kv.Value.(string); return text }
	if kv, ok := kvs.Get("split.count"); ok && len(file.SplitSizes) == 1 {
		split = gguf.ValueNumeric[int64](kv)
	}
	name, kind := text("general.architecture"), text("general.type")
	architecture := cmp.Or(sameAs[name], name)
	switch {
	case name == "":
		return Shape{}, errors.New("it names no architecture")
	case kind != "" && kind != "model":
		return Shape{}, fmt.Errorf("it is a part that goes with a model (%q), not a model", kind)
	case !slices.Contains(known, architecture):
		return Shape{}, fmt.Errorf("what a window takes is not known for the architecture %q; set the window yourself", name)
	case split > 1:
		return Shape{}, fmt.Errorf("it is one of %d parts; name it as it was, NAME-00001-of-%05d.gguf, with the others beside it", split, split)
	}
	s.file = &gguf.GGUFFile{}
	if s.file.Header.MetadataKV, err = metadata(kvs, name, architecture); err != nil {
		return Shape{}, err
	}
	a := s.file.Architecture()
	s.trained, s.blocks = int(min(a.MaximumContextLength, maxWindow)), make([]uint64, a.BlockCount)
	s.logits, s.heads = a.VocabularyLength+a.EmbeddingLength, a.AttentionHeadCountKVs
	s.unfolded, s.latent = 1, 1
	compressed := a.AttentionKeyLengthMLA > 0 || s.heads == nil && a.AttentionHeadCountKV == 1 // older files unfold
	if a.AttentionKeyValueLORARank > 0 && compressed {
		width := a.AttentionKeyLength + a.AttentionValueLength
		if a.AttentionKeyLengthMLA > 0 && a.AttentionValueLengthMLA > 0 {
			width = a.AttentionKeyLengthMLA + a.AttentionValueLengthMLA
		}
		s.unfolded, s.latent = max(a.AttentionHeadCountKV*uint64(width), 1), uint64(a.AttentionKeyValueLORARank)+a.RoPEDimensionCount
	}
	if err := s.weigh(file); err != nil {
		return Shape{}, err
	}
	s.costs(step, Options{}) // a shape on which the library panics is none
	return s, nil
}

// metadata checks the values that count, and writes them as the library reads them.
// Of values that come twice, as in files of parts, the first counts.
func metadata(kvs gguf.GGUFMetadataKVs, name, architecture string) (kept gguf.GGUFMetadataKVs, err error) {
	numbers := map[string]uint64{} // of lists the largest
	add := func(short string, kind gguf.GGUFMetadataValueType, value any) {
		kept = append(kept, gguf.GGUFMetadataKV{Key: architecture + "." + short, ValueType: kind, Value: value})
	}
	for _, kv := range kvs {
		short, own := strings.CutPrefix(kv.Key, name+".")
		limit, counts := used[short]
		n, ok := largest(kv.Value, short == "attention.sliding_window_pattern")
		_, again := numbers[short]
		switch {
		case !own || again:
		case short == "attention.causal" && kv.Value == false, short == "pooling_type" && n > 2:
			return nil, errors.New("it does not write text, it makes embeddings")
		case !counts:
		case !ok || n > limit:
			return nil, fmt.Errorf("its %s cannot be right", kv.Key)
		case short == "attention.head_count": // of a list, the library takes the first
			numbers[short] = n
			add(short, gguf.GGUFMetadataValueTypeUint64, n)
		default:
			numbers[short] = n
			add(short, kv.ValueType, kv.Value)
		}
	}
	remembers := numbers["ssm.conv_kernel"]+numbers["wkv.head_size"]+numbers["shortconv.l_cache"]+numbers["kda.head_dim"] > 0
	for _, short := range []string{"block_count", "context_length", "embedding_length", "attention.head_count"} {
		if numbers[short] == 0 && (!remembers || short != "attention.head_count") {
			return nil, fmt.Errorf("it lacks %s.%s", name, short)
		}
	}
	if numbers["full_attention_interval"] > 1 && !remembers {
		return nil, fmt.Errorf("it lacks %s.ssm.conv_kernel", name)
	}
	if tokens, ok := kvs.Get("tokenizer.ggml.tokens"); ok && numbers["vocab_size"] == 0 {
		list, _ := tokens.Value.(gguf.GGUFMetadataKVArrayValue)
		add("vocab_size", gguf.GGUFMetadataValueTypeUint64, list.Len)
	}
	kind := gguf.GGUFMetadataKV{Key: "general.architecture", ValueType: gguf.GGUFMetadataValueTypeString, Value: architecture}
	return append(kept, kind), nil
}

// largest returns the largest of a number or a list of numbers. ok is false for what
// is not whole or negative, and for truth values if it is not a list of them that is
// wanted; there the library takes truth values only, and gets them.
func largest(value any, truths bool) (largest uint64, ok bool) {
	values := []any{value}
	list, isList := value.(gguf.GGUFMetadataKVArrayValue)
	if isList {
		values = list.Array
	}
	for i, v := range values {
		n := uint64(0)
		switch r := reflect.ValueOf(v); {
		case r.CanInt() && r.Int() >= 0:
			n = uint64(r.Int())
		case r.CanUint():
			n = r.Uint()
		case truths && isList && r.Kind() == reflect.Bool:
			continue
		default:
			return 0, false
		}
		if largest = max(largest, n); truths && isList {
			values[i] = n != 0
		}
	}
	return largest, len(values) > 0
}

// weigh sums up the weights by where they go, and keeps the tensors by which the
// library works out what computing takes: those around the layers and those of one
// layer, the last with attention.
func (s *Shape) weigh(file *gguf.GGUFFile) error {
	words, all, chosen, attends, tied := uint64(0), uint64(0), -1, false, true
	for _, t := range file.TensorInfos {
		bytes := t.Bytes()
		if bytes > most || slices.Max(t.Dimensions) > 1<<24 {
			return fmt.Errorf("tensor %q is too large to be real", t.Name)
		}
		all += bytes
		n, ok := block(t.Name)
		switch {
		case ok && n >= len(s.blocks):
			return fmt.Errorf("tensor %q is beyond its %d layers", t.Name, len(s.blocks))
		case ok:
			query := strings.Contains(t.Name, ".attn_q.") || strings.Contains(t.Name, ".attn_qkv.") || strings.Contains(t.Name, ".attn_q_b.")
			if query && !attends || query == attends && n > chosen {
				chosen, attends = n, query
			}
			s.blocks[n] += bytes
		case strings.HasPrefix(t.Name, "token_") || strings.HasPrefix(t.Name, "position_"):
			words += bytes
		default:
			tied = tied && t.Name != "output.weight"
			s.output += bytes
		}
	}
	if chosen < 0 {
		return errors.New("it has no layers: is it a file that goes with a model, for pictures or as an adapter?")
	}
	if have := int64(file.ModelSize); have < int64(all) {
		return fmt.Errorf("its weights are %d bytes, but only %d are there: it was not downloaded to its end, or is damaged", all, max(have, 0))
	}
	if tied {
		s.output += words
	}
	for _, t := range file.TensorInfos {
		if n, ok := block(t.Name); ok && n == chosen || strings.HasPrefix(t.Name, "token_") || strings.HasPrefix(t.Name, "output") {
			s.file.TensorInfos = append(s.file.TensorInfos, t)
		}
	}
	return nil
}

// block tells which layer a tensor belongs to: blk.7.attn_q.weight to 7.
func block(name string) (n int, ok bool) {
	rest, found := strings.CutPrefix(name, "blk.")
	digits, _, dotted := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	return n, found && dotted && err == nil && n >= 0
}
