package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
