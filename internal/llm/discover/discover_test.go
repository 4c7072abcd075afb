package discover_test

import (
	"net/http"
	"net/http/httptest"
	"reverie/internal/llm/discover"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	list := func(body string, status int) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer key-1" {
				http.NotFound(w, r)
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s
	}
	good := list(`{"data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},{"id":"llama"}]}`, 200)
	page := list(`<html>hello</html>`, 200)
	shut := list(``, 401)
	for _, c := range []struct {
		name, url, model, want string
		fails                  bool
	}{
		{"first that can chat", good.URL + "/v1/", "", "qwen3:8b", false},
		{"named model wins", good.URL + "/v1", "llama", "llama", false},
		{"a web page is no model server", page.URL + "/v1", "", "", true},
		{"refused", shut.URL + "/v1", "", "", true},
		{"a server without a list, and a named model", shut.URL + "/v1", "gpt", "gpt", false},
		{"the stand-in by name", discover.Rehearsal, "", "rehearsal", false},
	} {
		env := map[string]string{"REVERIE_LLM_URL": c.url, "REVERIE_LLM_KEY": "key-1", "REVERIE_LLM_MODEL": c.model}
		got, err := discover.Detect(t.Context(), func(k string) string { return env[k] })
		if (err != nil) != c.fails || got.Model != c.want {
			t.Errorf("%s: %q, %v; want %q, failure %v", c.name, got.Model, err, c.want, c.fails)
		}
		if err != nil && (!strings.Contains(err.Error(), "REVERIE_LLM_URL") || strings.Contains(err.Error(), "key-1")) {
			t.Errorf("%s: error %q must name the variable and never the key", c.name, err)
		}
	}
}
