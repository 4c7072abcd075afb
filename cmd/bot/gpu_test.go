package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"reverie/internal/prompt"
)

func TestPlaceOf(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("192.168.1.7"), netip.MustParseAddr("fe80::1")}
	names := map[string][]netip.Addr{
		"attic.lan": {netip.MustParseAddr("192.168.1.7")}, "gpu.lan": {netip.MustParseAddr("192.168.1.8")}, "nowhere.lan": {},
		"both.lan": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.168.1.8")}, "ollama": {netip.MustParseAddr("172.18.0.2")},
	}
	find := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		a, ok := names[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return a, nil
	}
	tests := []struct {
		url  string
		here bool
		why  string
	}{
		{"http://127.0.0.1:11434/v1", true, "127.0.0.1 is this machine"},
		{"http://127.8.8.8/v1", true, ""},
		{"http://[::1]:8080/v1", true, ""},
		{"http://[::ffff:127.0.0.1]:8080/v1", true, ""},
		{"http://0.0.0.0:8080/v1", true, ""},
		{"http://localhost:8080/v1", true, "localhost is this machine"},
		{"http://LocalHost.:8080/v1", true, ""},
		{"http://models.localhost/v1", true, ""},
		{"http://192.168.1.7:8080/v1", true, ""},
		{"http://[::ffff:192.168.1.7]:8080/v1", true, ""},
		{"http://[fe80::1%25eth0]:8080/v1", true, ""},
		{"http://192.168.1.8:8080/v1", false, "192.168.1.8 is another machine"},
		{"http://10.0.0.1/v1", false, ""},
		{"http://attic.lan/v1", true, "attic.lan is this machine"},
		{"http://gpu.lan:11434/v1", false, "gpu.lan is another machine"},
		{"http://both.lan/v1", false, ""},
		{"http://nowhere.lan/v1", false, ""},
		{"http://ollama:11434/v1", false, "ollama is another machine"}, // a container beside this one
		{"http://localhost.evil.example/v1", false, "error"},
		{"https://api.openai.com/v1", false, "error"},
		{"", false, "there is no model for chat"},
		{rehearsalURL, false, "the stand-in model is a part of this program and needs no GPU"},
	}
	for _, tt := range tests {
		p, err := placeOf(t.Context(), tt.url, find, own)
		if p.here != tt.here || (err != nil) != (tt.why == "error") || err == nil && tt.why != "" && p.why != tt.why {
			t.Errorf("%s: %+v, %v", tt.url, p, err)
		}
	}
	if addresses := ownAddresses(); len(addresses) == 0 {
		t.Error("this machine has no addresses")
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
		{"not loaded, and elsewhere", 0, 131072, "vram_mib: 24564", true, 4096, 1, prompt.ByLeast, "GPU memory: not looked at (gpu.lan is another machine)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := botFor(t, asOllama(t, tt.loaded, tt.trained), tt.context)
			if tt.elsewhere {
				b.place.Store(&place{false, "gpu.lan is another machine"})
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
