package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/prompt"
)

func TestPlaceOf(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:11434/v1":         "127.0.0.1 is this machine",
		"http://127.8.8.8/v1":               "127.8.8.8 is this machine",
		"http://[::1]:8080/v1":              "::1 is this machine",
		"http://[::ffff:127.0.0.1]:8080/v1": "::ffff:127.0.0.1 is this machine",
		"http://0.0.0.0:8080/v1":            "0.0.0.0 is this machine",
		"http://LocalHost:8080/v1":          "LocalHost is this machine",
		"http://192.168.1.8:8080/v1":        "192.168.1.8 is another machine; if it is this one, write localhost in its address",
		"http://localhost.evil.example/v1":  "localhost.evil.example is another machine; if it is this one, write localhost in its address",
		"http://127.0.0.1.evil.example/v1":  "127.0.0.1.evil.example is another machine; if it is this one, write localhost in its address",
		"":                                  "there is no model for chat",
		rehearsalURL:                        "the stand-in model is a part of this program and needs no GPU",
	} {
		if here, why := placeOf(url); why != want || here != strings.HasSuffix(want, "is this machine") {
			t.Errorf("%s: here %v, %s", url, here, why)
		}
	}
}

// asOllama is a server that answers as Ollama does; loaded 0 = it has not loaded its model.
func asOllama(t *testing.T, loaded, trained int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/ps":
			models := ""
			if loaded > 0 {
				models = fmt.Sprintf(`{"name":"m","context_length":%d,"size":10,"size_vram":8}`, loaded)
			}
			fmt.Fprintf(w, `{"models":[%s]}`, models)
		case "/api/show":
			fmt.Fprintf(w, `{"model_info":{"general.architecture":"a","a.context_length":%d}}`, trained)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// botFor is a bot whose model m is at base, with the section context as given.
func botFor(t *testing.T, base, context string) *bot {
	t.Helper()
	return openTest(t, fmt.Sprintf("llm:\n  models:\n    - {name: local, base_url: %q, model: m}\ncontext: {%s}\n", base, context))
}

// TestTierOfAServer: with a server that is there, on this machine and elsewhere.
func TestTierOfAServer(t *testing.T) {
	tests := []struct {
		name            string
		loaded, trained int
		context         string
		elsewhere       bool
		window, tier    int
		source          prompt.Origin
		text            string // part of the steps and warnings
	}{
		{"loaded", 16384, 40960, "vram_mib: 81920", false, 16384, 3, prompt.ByServer, "server: 16384 tokens (ollama /api/ps)"},
		{"loaded, partly beside the GPU", 16384, 40960, "vram_mib: 81920", false, 16384, 3, prompt.ByServer, "20 % of the model found no room on the GPU"},
		{"not loaded, a GPU here", 0, 131072, "vram_mib: 24564", false, 32768, 4, prompt.ByMemory, "GPU memory: 32768 tokens (what Ollama loads with 24564 MiB)"},
		{"not loaded, a small model", 0, 16384, "vram_mib: 24564", false, 16384, 3, prompt.ByMemory, "lowered to 16384 tokens, the model reads no more"},
		{"not loaded, asking is off", 0, 131072, "probe: false", false, 4096, 1, prompt.ByLeast, "GPU memory: unknown (asking is switched off in the configuration)"},
		{"not loaded, and elsewhere", 0, 131072, "vram_mib: 24564", true, 4096, 1, prompt.ByLeast, "GPU memory: not looked at (gpu.lan is another machine;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := botFor(t, asOllama(t, tt.loaded, tt.trained), tt.context)
			if tt.elsewhere {
				b.cfg.LLM.Models[0].BaseURL = "http://gpu.lan:11434/v1"
			}
			b.lookAround(t.Context())
			r, err := b.tier(t.Context())
			must(t, err)
			if r.Window != tt.window || r.Tier != tt.tier || r.Source != tt.source {
				t.Errorf("window %d, tier %d, from %s", r.Window, r.Tier, r.Source)
			}
			if all := strings.Join(append(r.Steps, r.Warnings...), "\n"); !strings.Contains(all, tt.text) {
				t.Errorf("no %q in\n%s", tt.text, all)
			}
			if tt.elsewhere && !b.gpu.Last().Asked.IsZero() {
				t.Error("the GPU was asked for a server elsewhere")
			}
		})
	}
}

// modelHeader is that of a model of 40 layers in F16, 16.5 GiB large, whose window
// takes 160 KiB a token; and how large its file is.
func modelHeader() (header []byte, size int64) {
	const layers, embedding, heads, kv, feed, words = 40, 4096, 32, 8, 14336, 1000
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a buffer takes everything
	text := func(s string) { put(uint64(len(s))); b.WriteString(s) }
	type tensor struct {
		name string
		dims []uint64
	}
	tensors := []tensor{{"token_embd.weight", []uint64{embedding, words}}, {"output_norm.weight", []uint64{embedding}}, {"output.weight", []uint64{embedding, words}}}
	for i := range layers {
		for _, t := range []tensor{
			{"attn_norm", []uint64{embedding}}, {"attn_q", []uint64{embedding, embedding}}, {"attn_k", []uint64{embedding, embedding / heads * kv}},
			{"attn_v", []uint64{embedding, embedding / heads * kv}}, {"attn_output", []uint64{embedding, embedding}}, {"ffn_norm", []uint64{embedding}},
			{"ffn_gate", []uint64{embedding, feed}}, {"ffn_up", []uint64{embedding, feed}}, {"ffn_down", []uint64{feed, embedding}},
		} {
			tensors = append(tensors, tensor{fmt.Sprintf("blk.%d.%s.weight", i, t.name), t.dims})
		}
	}
	values := []struct {
		key   string
		value uint32
	}{
		{"block_count", layers}, {"context_length", 131072}, {"embedding_length", embedding}, {"feed_forward_length", feed},
		{"attention.head_count", heads}, {"attention.head_count_kv", kv}, {"vocab_size", words},
	}
	b.WriteString("GGUF")
	put(uint32(3))
	put(uint64(len(tensors)))
	put(uint64(len(values) + 1))
	text("general.architecture")
	put(uint32(8))
	text("llama")
	for _, v := range values {
		text("llama." + v.key)
		put(uint32(4))
		put(v.value)
	}
	var offset uint64
	for _, t := range tensors {
		text(t.name)
		put(uint32(len(t.dims)))
		put(t.dims)
		put(uint32(1))
		put(offset)
		n := uint64(2)
		for _, d := range t.dims {
			n *= d
		}
		offset += n
	}
	return b.Bytes(), int64(b.Len()) + int64(offset) + 64
}

// TestFit: a window that is too large for the GPU beside the model is warned of, where
// Ollama keeps the model, and where llama.cpp says its file is.
func TestFit(t *testing.T) {
	header, size := modelHeader()
	put := func(t *testing.T, content []byte, size int64, path ...string) string {
		t.Helper()
		file := filepath.Join(path...)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, content, 0o600))
		must(t, os.Truncate(file, size))
		return file
	}
	dir := t.TempDir()
	const hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	put(t, header, size, dir, "ollama", "blobs", "sha256-"+hex)
	manifest := fmt.Appendf(nil, `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, hex, size)
	put(t, manifest, int64(len(manifest)), dir, "ollama", "manifests", "registry.ollama.ai", "library", "m", "latest")
	t.Setenv("OLLAMA_MODELS", filepath.Join(dir, "ollama"))
	file := put(t, header, size, dir, "m.gguf")
	llamaCPP := func(window int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/props" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprintf(w, `{"default_generation_settings":{"n_ctx":%d},"total_slots":1,"model_path":%q,"build_info":"b7000"}`, window, file)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	for _, tt := range []struct {
		name, base string
		mib        int
		warned     bool
	}{
		{"Ollama, 24 GiB", asOllama(t, 0, 131072), 24564, true},
		{"Ollama, 40 GiB", asOllama(t, 0, 131072), 40960, false},
		{"llama.cpp, 24 GiB", llamaCPP(65536), 24564, true},
		{"llama.cpp, 24 GiB, a small window", llamaCPP(4096), 24564, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := botFor(t, tt.base, fmt.Sprintf("vram_mib: %d", tt.mib))
			b.lookAround(t.Context())
			if in := b.windowInputs(); in.Fit.Tokens < 4096 {
				t.Fatalf("fit %+v", in.Fit)
			}
			r, err := b.tier(t.Context())
			must(t, err)
			warned := strings.Contains(strings.Join(r.Warnings, "\n"), "will not fit into the GPU memory")
			if warned != tt.warned || tt.warned && r.Source == prompt.ByNobody {
				t.Errorf("window %d, fit %+v, warnings %q", r.Window, b.windowInputs().Fit, r.Warnings)
			}
		})
	}
}
