package llm

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

const chatPath = "/v1/chat/completions"

// long is a request of about n tokens.
func long(n int) Request {
	return Request{Messages: []Message{{Role: User, Content: strings.Repeat("word ", n*100/(5*costLower))}}}
}

func TestRefusalsTeach(t *testing.T) {
	tests := []struct {
		name, body string
		code       int
		req        Request
		tokens     int // the window afterwards
		label      Label
	}{
		{"openai", `{"error":{"message":"This model's maximum context length is 4097 tokens. However, you requested 5000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 400, hello, 4097, Enforced},
		{"larger than thought", `{"error":{"message":"This endpoint's maximum context length is 131,072 tokens. However, you requested about 140000","code":400}}`, 400, hello, 131072, Enforced},
		{"vllm", `{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model length of 2048. Make sure that max_model_len is no smaller; reduce the length","code":400}`, 400, hello, 2048, Enforced},
		{"llama.cpp, in a field", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":7000,"n_ctx":6144}}`, 400, hello, 6144, Enforced},
		{"llama.cpp, in words", `{"error":{"message":"request (7000 tokens) exceeds the available context size (6144 tokens), try increasing it"}}`, 400, hello, 6144, Enforced},
		{"anthropic", `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, 400, hello, 200000, Enforced},
		{"google", `{"error":{"message":"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576)."}}`, 400, hello, 1048576, Enforced},
		{"lm studio", `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}`, 400, hello, 4096, Enforced},
		{"no number", `{"error":{"message":"prompt too long"}}`, 400, long(3000), 3783, Estimated},
		{"a proxy", `<html>too large</html>`, 413, long(6000), 6036, Estimated},
		{"no number, and a small request", `{"error":{"message":"prompt too long"}}`, 400, hello, 8192, Default},
		{"an absurd number", `{"error":{"message":"maximum context length is 12 tokens"}}`, 400, hello, 8192, Default},
		{"another error with a number", `{"error":{"message":"rate: model length is 2048"}}`, 500, hello, 8192, Default},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := describe(t, map[string]http.HandlerFunc{chatPath: status(tt.code, tt.body)})
			m := detecting(t, d, ModelConfig{}, nil)
			if _, err := m.Complete(t.Context(), "chat", tt.req, nil); err == nil {
				t.Fatal("no error")
			}
			l := m.Limit("a")
			if near := l.Tokens - tt.tokens; l.Label != tt.label || near < -60 || near > 60 || tt.label != Estimated && near != 0 {
				t.Errorf("got %v", l)
			}
			if tt.label != Default && !strings.HasPrefix(l.Source, "learned") {
				t.Errorf("source %q", l.Source)
			}
		})
	}
}

func TestRefusalCapsWhatIsConfigured(t *testing.T) {
	d := describe(t, map[string]http.HandlerFunc{chatPath: status(400, `{"error":{"message":"maximum context length is 4096 tokens"}}`)})
	m := detecting(t, d, ModelConfig{Window: 32768, MaxOutput: 8000}, nil)
	_, _ = m.Complete(t.Context(), "chat", hello, nil)
	if w, out := m.Window("chat"); w != 4096 || out != 1024 {
		t.Error(w, out)
	}
}

// What was learned holds while the server says the same, and not for ever.
func TestLearnedEnds(t *testing.T) {
	props := func(n string) http.HandlerFunc { return says200(`{"default_generation_settings":{"n_ctx":` + n + `}}`) }
	d := describe(t, map[string]http.HandlerFunc{propsPath: props("16384"), chatPath: status(400, `{"error":{"message":"maximum context length is 4096 tokens"}}`)})
	now := time.Unix(1e9, 0)
	m := detecting(t, d, ModelConfig{}, func(c *Config) { c.Now = func() time.Time { return now } })
	is := func(want int) {
		t.Helper()
		if l := m.Limit("a"); l.Tokens != want {
			t.Errorf("got %v, want %d", l, want)
		}
	}
	learn := func() {
		m.Detect(t.Context())
		_, _ = m.Complete(t.Context(), "chat", hello, nil)
		is(4096)
	}
	learn()
	m.Detect(t.Context())
	is(4096)
	d.set(propsPath, props("32768"))
	m.Detect(t.Context())
	is(32768)
	learn()
	now = now.Add(keepLearned)
	is(32768)
}

// Ollama leaves out the beginning of what is too large and says nothing.
func TestSilentTruncation(t *testing.T) {
	read := func(n string) http.HandlerFunc {
		return events(`{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, finishStop, `{"choices":[],"usage":{"prompt_tokens":`+n+`,"completion_tokens":3}}`, "[DONE]")
	}
	tests := []struct {
		name, read string
		ollama     bool
		want       int
	}{
		{"all was read", "5500", true, 4096 * 2},
		{"half was read", "2040", true, 2048},
		{"a server that refuses instead", "2040", false, 8192},
		{"not counted", "12", true, 8192},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			paths := map[string]http.HandlerFunc{chatPath: read(tt.read)}
			if tt.ollama {
				paths[psPath] = ps(`{"name":"m:latest","context_length":8192}`)
			}
			m := detecting(t, describe(t, paths), ModelConfig{}, nil)
			m.Detect(t.Context())
			ask(t, m, long(6000))
			if l := m.Limit("a"); l.Tokens != tt.want {
				t.Errorf("got %v", l)
			}
		})
	}
}

// A model that was unloaded for being idle comes back as it was.
func TestUnloadedModelKeepsItsWindow(t *testing.T) {
	d := describe(t, map[string]http.HandlerFunc{psPath: ps(`{"name":"m:latest","context_length":16384}`), showPath: show(131072, "")})
	m := detecting(t, d, ModelConfig{}, nil)
	m.Detect(t.Context())
	d.set(psPath, ps(""))
	m.Detect(t.Context())
	if l := m.Limit("a"); l.Tokens != 16384 || l.Label != Enforced {
		t.Errorf("unloaded: %v", l)
	}
	d.set(psPath, ps(`{"name":"m:latest","context_length":4096}`))
	m.Detect(t.Context())
	if l := m.Limit("a"); l.Tokens != 4096 {
		t.Errorf("loaded anew: %v", l)
	}
}

// The first answer loads the model: then its server knows.
func TestRunLooksAgainAfterAnAnswer(t *testing.T) {
	d := describe(t, map[string]http.HandlerFunc{psPath: ps(""), showPath: show(131072, "")})
	d.set(chatPath, func(w http.ResponseWriter, r *http.Request) {
		d.set(psPath, ps(`{"name":"m:latest","context_length":32768}`))
		answers("hi")(w, r)
	})
	start := time.Now()
	m := detecting(t, d, ModelConfig{}, func(c *Config) { // a clock that runs fast: all is old at once
		c.Now = func() time.Time { return start.Add(1000 * time.Since(start)) }
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	until := func(want int) {
		t.Helper()
		for give := time.Now().Add(20 * time.Second); m.Limit("a").Tokens != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(give) {
				t.Fatalf("still %v", m.Limit("a"))
			}
		}
	}
	until(4096)
	time.Sleep(70 * time.Millisecond) // more than a minute by that clock
	ask(t, m, hello)
	until(32768)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func FuzzReadDescriptions(f *testing.F) {
	for _, s := range []string{`{"data":[{"id":"m","max_model_len":40960,"parent":"m"}]}`, `{"models":[{"name":"m","context_length":1}]}`, `{"default_generation_settings":{"n_ctx":8192}}`,
		`{"model_info":{"general.architecture":"a","a.context_length":8192},"parameters":"num_ctx 8192"}`, `null`, `{"data":[{"id":"m","state":"loaded","loaded_context_length":1e3}]}`, `maximum context length is 99999999999999999999 tokens`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var all []said
		for _, read := range []func([]byte, string) (said, error){readProps, readLMStudio, readPS, readList, readShow} {
			a, err := read([]byte(raw), "m")
			if err != nil && (a != said{}) {
				t.Errorf("%+v beside %v", a, err)
			}
			all = append(all, a)
		}
		for _, n := range []int{decide(all).Limit.Tokens, saidLimit(raw)} {
			if n != 0 && (n < leastTokens || n > mostTokens) {
				t.Errorf("a window of %d", n)
			}
		}
	})
}
