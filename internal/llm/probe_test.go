package llm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProbe(t *testing.T) {
	list := func(owner string, ids ...string) http.HandlerFunc {
		var data []string
		for _, id := range ids {
			data = append(data, fmt.Sprintf(`{"id":%q,"owned_by":%q}`, id, owner))
		}
		return status(200, `{"object":"list","data":[`+strings.Join(data, ",")+`]}`)
	}
	tests := []struct {
		name  string
		steps []http.HandlerFunc
		says  string // "" = good
	}{
		{"there", []http.HandlerFunc{list("library", "other", "m")}, ""},
		{"there as latest", []http.HandlerFunc{list("library", "m:latest")}, ""},
		{"llama.cpp", []http.HandlerFunc{list("llamacpp", "/models/x.gguf")}, ""},
		{"not there", []http.HandlerFunc{list("library", "other", "third")}, "it has: other, third"},
		{"key", []http.HandlerFunc{status(401, "no "+testKey)}, "Correct api_key"},
		{"no list, but answers", []http.HandlerFunc{status(404, "404"), answers("hi")}, ""},
		{"not the API", []http.HandlerFunc{status(404, "404 page not found")}, "usually ends in /v1"},
		{"a web page", []http.HandlerFunc{status(200, "<html>")}, "Correct base_url"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := setup(t, &waits{}, nil, script(t, tt.steps...).URL).Probe(t.Context(), "a")
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("got %v, want %q", err, tt.says)
			case err != nil && strings.Contains(err.Error(), testKey):
				t.Errorf("the key shows: %v", err)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	m := setup(t, &waits{}, nil, gone.URL)
	if err := m.Probe(t.Context(), "a"); kindOf(t, err) != Unreachable || !strings.Contains(err.Error(), "Start the server") {
		t.Error(err)
	}
	if err := m.Probe(t.Context(), "b"); kindOf(t, err) != NotFound {
		t.Error(err)
	}
}
