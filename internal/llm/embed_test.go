package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

// embedder returns an Embedding on a server that answers with steps.
func embedder(t *testing.T, path string, steps ...http.HandlerFunc) (*Embedding, *scripted) {
	t.Helper()
	s := script(t, steps...)
	return NewEmbedding(ModelConfig{BaseURL: s.URL + path, APIKey: "sekret-key", Model: "embed-small"},
		Config{Retry: Retry{Sleep: (&waits{}).sleep}}), s
}

func TestEmbedBothProtocols(t *testing.T) {
	for path, answer := range map[string]string{
		"/v1":  `{"object":"list","data":[{"index":1,"embedding":[0,5]},{"index":0,"embedding":[3,4]}]}`,
		"/api": `{"model":"embed-small","embeddings":[[3,4],[0,5]],"total_duration":1}`,
		"/v1/": `{"data":[{"embedding":[3,4]},{"embedding":[0,5]}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			asked := ""
			e, s := embedder(t, path, func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				status(200, answer)(w, r)
			})
			got := expect.Must(e.Embed(t.Context(), []string{"one", " ", "two"}))(t)
			if fmt.Sprint(got) != "[[0.6 0.8] [] [0 1]]" || got[1] != nil {
				t.Errorf("vectors %v", got)
			}
			want := map[string]string{"/v1": "/v1/embeddings", "/v1/": "/v1/embeddings", "/api": "/api/embed"}[path]
			expect.Equal(t, asked, want, "asked")
			if body := s.body(0); fmt.Sprint(body["input"]) != "[one two]" || body["model"] != "embed-small" {
				t.Errorf("request %v", body)
			}
			expect.Equal(t, s.auth[0], "Bearer sekret-key", "authorization")
		})
	}
}

// TestEmbedTrouble: every bad answer gets its kind and an explanation.
func TestEmbedTrouble(t *testing.T) {
	const good = `{"embeddings":[[1,0],[0,1]]}`
	tests := map[string]struct {
		status   int
		body     string
		kind     Kind
		says     string
		requests int // before it gives up
	}{
		"rate limit":       {429, `{"error":{"message":"slow down"}}`, RateLimited, "slow down", 3},
		"server error":     {500, `{"error":"unsupported value: NaN"}`, Failed, "unsupported value", 3},
		"gateway":          {502, `<html>Bad Gateway</html>`, Failed, "a web page", 3},
		"no key":           {401, `{"error":{"message":"bad key sekret-key"}}`, Denied, "bad key [secret]", 1},
		"no model":         {404, `{"error":"model \"embed-small\" not found, try pulling it first"}`, NotFound, "try pulling it", 1},
		"no reason":        {400, ``, Failed, "no reason given", 1},
		"redirect":         {302, ``, Garbled, "302", 1},
		"web page":         {200, `<!doctype html><title>Welcome</title>`, Garbled, "llm.embedding.base_url", 2},
		"nothing":          {200, ``, Garbled, "no list of vectors", 2},
		"chat answer":      {200, `{"choices":[]}`, Garbled, "0 vectors came for 2 texts", 2},
		"error within":     {200, `{"error":{"message":"out of memory"}}`, Garbled, "out of memory", 2},
		"short list":       {200, `{"embeddings":[[1,0]]}`, Garbled, "1 vectors came for 2 texts", 2},
		"long list":        {200, `{"embeddings":[[1,0],[1,0],[1,0]]}`, Garbled, "3 vectors came for 2 texts", 2},
		"short data":       {200, `{"data":[{"index":0,"embedding":[1]}]}`, Garbled, "1 vectors came for 2 texts", 2},
		"zero vector":      {200, `{"embeddings":[[1,0],[0,0]]}`, Garbled, "vector 2 of 2 has no length", 2},
		"empty vector":     {200, `{"embeddings":[[1,0],[]]}`, Garbled, "vector 2 of 2 has no length", 2},
		"missing vector":   {200, `{"data":[{"index":0,"embedding":[1]},{"index":1}]}`, Garbled, "vector 2 of 2 has no length", 2},
		"NaN":              {200, `{"embeddings":[[1,NaN],[0,1]]}`, Garbled, "NaN", 2},
		"null":             {200, `{"embeddings":[[null,null],[0,1]]}`, Garbled, "vector 1 of 2 has no length", 2},
		"too large number": {200, `{"embeddings":[[1e300,1],[0,1]]}`, Garbled, "no list of vectors", 2},
		"words":            {200, `{"embeddings":[["a"],["b"]]}`, Garbled, "no list of vectors", 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, s := embedder(t, "/api", status(tt.status, tt.body))
			got, err := e.Embed(t.Context(), []string{"one", "two"})
			var failed *Error
			if !errors.As(err, &failed) || got != nil {
				t.Fatalf("got %v, %v", got, err)
			}
			if failed.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "sekret-key") {
				t.Errorf("%v: %v, want %v with %q", failed.Kind, err, tt.kind, tt.says)
			}
			expect.Equal(t, s.requests(), tt.requests, "requests")
			if tt.requests == 1 {
				return
			}
			e, _ = embedder(t, "/api", status(tt.status, tt.body), status(200, good))
			if _, err := e.Embed(t.Context(), []string{"one", "two"}); err != nil {
				t.Errorf("a second try that works is not taken: %v", err)
			}
		})
	}
}

// TestEmbedTooLong: a large batch is split, and a text that is too long alone is cut.
// Holds W11.
func TestEmbedTooLong(t *testing.T) {
	refusals := map[string]http.HandlerFunc{
		"413":       status(413, `{"error":"batch size 3 > maximum allowed batch size 2","error_type":"Validation"}`),
		"llama.cpp": status(500, `{"error":{"code":500,"message":"input is too large to process. increase the physical batch size"}}`),
		"openai":    status(400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`),
		"tei":       status(422, `{"error":"Input validation error: inputs must have less than 512 tokens. Given: 1132"}`),
		"ollama":    status(400, `{"error":"the input length exceeds the context length"}`),
	}
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			e, s := embedder(t, "/api", nil)
			s.steps[0] = func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				input := s.bodies[len(s.bodies)-1]["input"].([]any)
				s.mu.Unlock()
				vectors := [][]int{}
				for _, text := range input {
					if len(text.(string)) > 300 || len(input) > 2 {
						refuse(w, r)
						return
					}
					vectors = append(vectors, []int{len(text.(string)), 1})
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": vectors})
			}
			got := expect.Must(e.Embed(t.Context(), []string{"a", strings.Repeat("b", 1000), "ccc"}))(t)
			for i, want := range []float32{1, 250, 3} {
				if math.Abs(float64(got[i][0]/got[i][1]-want)) > .01 {
					t.Errorf("vector %d is of a text of %v, want %v", i, got[i][0]/got[i][1], want)
				}
			}
			e, _ = embedder(t, "/api", refuse) // whatever the length
			if _, err := e.Embed(t.Context(), []string{strings.Repeat("b", 1000)}); err == nil {
				t.Error("no error of a server that takes nothing")
			}
		})
	}
}

func TestEmbedEnds(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	t.Run("deadline of the caller", func(t *testing.T) {
		e, _ := embedder(t, "/v1", hang)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := e.Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("timeout of the model", func(t *testing.T) {
		e, s := embedder(t, "/v1", hang)
		e.m.Timeout = 20 * time.Millisecond
		var failed *Error
		if _, err := e.Embed(t.Context(), []string{"a"}); !errors.As(err, &failed) || failed.Kind != TimedOut {
			t.Errorf("error %v", err)
		}
		expect.Equal(t, s.requests(), 3, "requests")
	})
	t.Run("nobody there", func(t *testing.T) {
		e, s := embedder(t, "/v1", hang)
		s.Close()
		var failed *Error
		if _, err := e.Embed(t.Context(), []string{"a"}); !errors.As(err, &failed) || failed.Kind != Unreachable || strings.Contains(err.Error(), "Post") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("sent elsewhere", func(t *testing.T) { // where the key would go along
		e, s := embedder(t, "/v1", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusTemporaryRedirect)
		})
		var failed *Error
		if _, err := e.Embed(t.Context(), []string{"a"}); !errors.As(err, &failed) || failed.Kind != Garbled || s.requests() != 1 {
			t.Errorf("error %v after %d requests", err, s.requests())
		}
	})
	t.Run("nothing to ask", func(t *testing.T) {
		e, s := embedder(t, "/v1", hang)
		if got, err := e.Embed(t.Context(), []string{"", "\n"}); err != nil || len(got) != 2 || s.requests() != 0 {
			t.Errorf("got %v, %v after %d requests", got, err, s.requests())
		}
	})
}
