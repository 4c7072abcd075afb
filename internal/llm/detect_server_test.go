package llm

import (
	"net/http"
	"testing"
)

// TestDetectServer: beside the window, what a server says that bears on it.
func TestDetectServer(t *testing.T) {
	type paths = map[string]http.HandlerFunc
	tests := []struct {
		name    string
		paths   paths
		server  string
		trained int
		outside int
		least   bool
	}{
		{"ollama, not loaded", paths{psPath: ps(""), showPath: show(131072, "")}, Ollama, 131072, 0, true},
		{"ollama, a Modelfile sets it", paths{psPath: ps(""), showPath: show(131072, "num_ctx 16384")}, Ollama, 131072, 0, false},
		{"ollama, all on the GPU", paths{psPath: ps(`{"name":"m","size":100,"size_vram":100,"context_length":8192}`)}, Ollama, 0, 0, false},
		{"ollama, a quarter is not", paths{psPath: ps(`{"name":"m","size":100,"size_vram":75,"context_length":8192}`)}, Ollama, 0, 25, false},
		{"ollama, hardly any is not", paths{psPath: ps(`{"name":"m","size":1000,"size_vram":999,"context_length":8192}`)}, Ollama, 0, 1, false},
		{"ollama, no sizes", paths{psPath: ps(`{"name":"m","context_length":8192}`)}, Ollama, 0, 0, false},
		{"ollama, odd sizes", paths{psPath: ps(`{"name":"m","size":"big","size_vram":null,"context_length":8192}`)}, Ollama, 0, 0, false},
		{"another server", paths{listPath: says200(`{"data":[{"id":"m","max_model_len":40960}]}`)}, "", 0, 0, false},
		{"nobody", nil, "", 0, 0, false},
	}
	gone := detecting(t, describe(t, nil), ModelConfig{}, nil)
	if gone.Limits("chat")[0].Answered {
		t.Error("answered before anybody asked")
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := detecting(t, describe(t, tt.paths), ModelConfig{}, nil)
			m.Detect(t.Context())
			got := m.Limits("chat")[0]
			if got.Server != tt.server || got.Trained != tt.trained || got.Outside != tt.outside || got.Limit.Least != tt.least || !got.Answered {
				t.Errorf("got %+v", got)
			}
		})
	}
}
