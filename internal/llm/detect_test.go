package llm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/llm/detect"
	"reverie/internal/test/expect"
)

// described is a server that describes its models: a handler for each path below /v1, and 404
// elsewhere.
type described struct {
	*httptest.Server
	mu    sync.Mutex
	paths map[string]http.HandlerFunc
	asked map[string]int
}

func describe(t *testing.T, paths map[string]http.HandlerFunc) *described {
	t.Helper()
	d := &described{paths: paths, asked: map[string]int{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.asked[r.URL.Path]++
		h := d.paths[r.URL.Path]
		if h == nil {
			h = d.paths["*"]
		}
		d.mu.Unlock()
		if h == nil {
			h = http.NotFound
		}
		h(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *described) set(path string, h http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paths[path] = h
}

func (d *described) requests() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.asked {
		n += c
	}
	return n
}

// detecting returns a set with the one model "a" on d.
func detecting(t *testing.T, d *described, c ModelConfig, set func(*Config)) *Models {
	t.Helper()
	c.Name, c.APIKey, c.BaseURL = "a", testKey, d.URL+"/v1"
	if c.Model == "" {
		c.Model = "m"
	}
	cfg := Config{Models: []ModelConfig{c}, Retry: Retry{Sleep: (&waits{}).sleep}, Detect: 20 * time.Second}
	if set != nil {
		set(&cfg)
	}
	return New(cfg)
}

func says200(body string) http.HandlerFunc { return status(200, body) }

// show returns Ollama's description of a model trained for n tokens.
func show(n int, parameters string) http.HandlerFunc {
	return says200(fmt.Sprintf(`{"license":"…","modelfile":"FROM x","parameters":%q,"details":{"family":"qwen3"},
		"model_info":{"general.architecture":"qwen3","qwen3.context_length":%d,"qwen3.attention.head_count":32,"tokenizer.ggml.tokens":null}}`, parameters, n))
}

func ps(models string) http.HandlerFunc { return says200(`{"models":[` + models + `]}`) }

const lmPath, psPath, showPath, propsPath, listPath = "/api/v0/models", "/api/ps", "/api/show", "/props", "/v1/models"

func TestDetect(t *testing.T) {
	type paths = map[string]http.HandlerFunc
	loaded := func(name string, n int) string {
		return fmt.Sprintf(`{"name":%q,"model":%q,"size":6591830464,"digest":"500a1f","size_vram":6591830464,"context_length":%d}`, name, name, n)
	}
	ownList := says200(`{"object":"list","data":[{"id":"m","object":"model","owned_by":"library"}]}`)
	cppList := func(trained int) http.HandlerFunc {
		return says200(fmt.Sprintf(`{"object":"list","data":[{"id":"/models/x.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":%d}}]}`, trained))
	}
	tests := []struct {
		name, model string
		paths       paths
		tokens      int
		label       detect.Label
		source      string // part of it
		step        string // part of one of the steps
	}{
		{"ollama, loaded", "qwen3:8b", paths{psPath: ps(loaded("other", 2048) + "," + loaded("qwen3:8b", 32768)), showPath: show(131072, ""), listPath: ownList},
			32768, detect.Enforced, "ollama /api/ps", "ollama /api/ps: loaded with 32768"},
		{"ollama, loaded as latest", "m", paths{psPath: ps(loaded("m:latest", 8192))}, 8192, detect.Enforced, "ollama /api/ps", ""},
		{"ollama, loaded beyond its training", "m", paths{psPath: ps(loaded("m", 65536)), showPath: show(32768, "")}, 65536, detect.Enforced, "ollama /api/ps", ""},
		{"ollama, another one is loaded", "m", paths{psPath: ps(loaded("m2", 32768)), showPath: show(131072, "")}, 4096, detect.Estimated, "Ollama", "not loaded now"},
		{"ollama, not loaded: the maximum is not believed", "m", paths{psPath: ps(""), showPath: show(131072, "stop \"<|im_end|>\"\n")},
			4096, detect.Estimated, "Ollama loads by itself", "at most 131072, which is not what is loaded"},
		{"ollama, a Modelfile sets it", "m", paths{psPath: ps(""), showPath: show(131072, "stop                           \"x\"\nnum_ctx                        16384\n")},
			16384, detect.Estimated, "ollama /api/show", "num_ctx 16384"},
		{"ollama, a Modelfile sets too much", "m", paths{psPath: ps(""), showPath: show(8192, "num_ctx 16384")}, 8192, detect.Estimated, "the model reads no more", ""},
		{"ollama, a small model", "m", paths{psPath: ps(""), showPath: show(2048, "")}, 2048, detect.Estimated, "the model reads no more", ""},
		{"ollama, an old one", "m", paths{psPath: ps(`{"name":"m","model":"m","size":1}`), showPath: show(131072, "")}, 4096, detect.Estimated, "Ollama", "does not say"},
		{"ollama, does not know the model", "m", paths{psPath: ps(""), showPath: status(404, `{"error":"model 'm' not found"}`)}, 4096, detect.Estimated, "Ollama", "404"},
		{"ollama, runs elsewhere", "m", paths{psPath: ps(""), showPath: says200(`{"remote_host":"https://ollama.com:443","model_info":{"general.architecture":"gptoss","gptoss.context_length":131072}}`)},
			131072, detect.Max, "ollama /api/show", ""},
		{"ollama, too large for its GPU", "m", paths{psPath: ps(`{"name":"m","size":10000000000,"size_vram":7500000000,"context_length":32768}`)},
			32768, detect.Enforced, "ollama /api/ps", "loaded with 32768, 25 % of it not on the GPU"},
		{"ollama, on the processor", "m", paths{psPath: ps(`{"name":"m","size":6591830464,"size_vram":0,"context_length":4096}`)},
			4096, detect.Enforced, "ollama /api/ps", "100 % of it not on the GPU"},
		{"ollama, no size on the GPU", "m", paths{psPath: ps(`{"name":"m","size":7,"size_vram":null,"context_length":4096}`)},
			4096, detect.Enforced, "ollama /api/ps", "loaded with 4096"},

		{"llama.cpp, of four slots", "m", paths{propsPath: says200(`{"default_generation_settings":{"id":0,"n_ctx":8192,"params":{}},"total_slots":4,"model_path":"/m.gguf","build_info":"b7000"}`), listPath: cppList(131072)},
			8192, detect.Enforced, "llama.cpp /props", "n_ctx 8192"},
		{"llama.cpp, answers for Ollama too", "m", paths{propsPath: says200(`{"default_generation_settings":{"n_ctx":6144}}`), showPath: show(131072, "num_ctx 99999")},
			6144, detect.Enforced, "llama.cpp /props", ""},
		{"llama.cpp, nothing loaded", "m", paths{propsPath: says200(`{"build_info":"b7000","default_generation_settings":{"n_ctx":0}}`), listPath: cppList(131072)},
			8192, detect.Default, "does not say", "no model is loaded"},
		{"llama.cpp, needs a key", "m", paths{propsPath: status(401, "no"), listPath: cppList(131072)}, 8192, detect.Default, "does not say", "llama.cpp /props: 401 Unauthorized"},
		{"llama.cpp, a small model", "m", paths{propsPath: status(501, "no"), listPath: cppList(4096)}, 4096, detect.Estimated, "the model reads no more", "which is not what is loaded"},
		{"llama.cpp, no meta", "m", paths{listPath: says200(`{"data":[{"id":"x","owned_by":"llamacpp","meta":null}]}`)}, 8192, detect.Default, "does not say", ""},

		{"vllm", "org/m", paths{listPath: says200(`{"object":"list","data":[{"id":"x","max_model_len":1024},{"id":"org/m","owned_by":"vllm","root":"org/m","parent":null,"max_model_len":40960}]}`)},
			40960, detect.Enforced, "/v1/models", "max_model_len 40960"},
		{"two say what is loaded: the surer one", "m", paths{propsPath: says200(`{"default_generation_settings":{"n_ctx":6144}}`), listPath: says200(`{"data":[{"id":"m","max_model_len":40960}]}`)},
			6144, detect.Enforced, "llama.cpp /props", "max_model_len 40960"},
		{"vllm, not in the list", "m", paths{listPath: says200(`{"data":[{"id":"org/m","max_model_len":40960}]}`)}, 8192, detect.Default, "does not say", "does not list the model"},

		{"lm studio, loaded", "m", paths{lmPath: says200(`{"data":[{"id":"x","state":"loaded","loaded_context_length":2048},{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":12000}]}`), "*": says200(`{"error":"Unexpected endpoint or method. (GET /props)"}`)},
			12000, detect.Enforced, "lm studio", "loaded with 12000, at most 131072"},
		{"lm studio, not loaded", "m", paths{lmPath: says200(`{"data":[{"id":"m","state":"not-loaded","max_context_length":131072,"loaded_context_length":9000}]}`)},
			4096, detect.Estimated, "LM Studio", "not loaded; at most 131072"},

		{"openrouter", "maker/m", paths{listPath: says200(`{"data":[{"id":"maker/m","context_length":262144,"top_provider":{"context_length":131072,"max_completion_tokens":null}}]}`)},
			131072, detect.Max, "/v1/models", "at most 131072"},
		{"openrouter, no top provider", "m", paths{listPath: says200(`{"data":[{"id":"m","context_length":65536,"top_provider":{"context_length":null}}]}`)}, 65536, detect.Max, "/v1/models", ""},
		{"groq", "m", paths{listPath: says200(`{"data":[{"id":"m","context_window":32768}]}`)}, 32768, detect.Max, "/v1/models", ""},
		{"mistral", "m", paths{listPath: says200(`{"data":[{"id":"m","max_context_length":32000}]}`)}, 32000, detect.Max, "/v1/models", ""},

		{"a server that tells", "gpt-4o", paths{listPath: says200(`{"data":[{"id":"gpt-4o","context_length":64000}]}`)}, 64000, detect.Max, "/v1/models", ""},

		{"401 everywhere", "m", paths{"*": status(401, "bad key "+testKey)}, 8192, detect.Default, "does not say", "401 Unauthorized"},
		{"500 everywhere", "m", paths{"*": status(500, "oops")}, 8192, detect.Default, "does not say", "500 Internal Server Error"},
		{"web pages", "m", paths{"*": says200("<!DOCTYPE html><title>hello</title>")}, 8192, detect.Default, "does not say", "ollama /api/ps: the answer has an unknown format"},
		{"empty answers", "m", paths{"*": says200("")}, 8192, detect.Default, "does not say", "an unknown format"},
		{"empty objects", "m", paths{"*": says200("{}")}, 8192, detect.Default, "does not say", "an unknown format"},
		{"null", "m", paths{"*": says200("null")}, 8192, detect.Default, "does not say", "an unknown format"},
		{"wrong types", "m", paths{propsPath: says200(`{"default_generation_settings":[1]}`), psPath: says200(`{"models":"m"}`), lmPath: says200(`[1]`),
			listPath: says200(`{"data":[null,{"id":"m","max_model_len":"40960","context_length":[2]}]}`), showPath: says200(`{"model_info":[]}`)},
			8192, detect.Default, "does not say", "/v1/models: says nothing about windows"},
		{"no window at all", "m", paths{listPath: says200(`{"data":[{"id":"m","max_model_len":-1,"context_length":1e9}]}`), propsPath: says200(`{"default_generation_settings":{"n_ctx":7}}`)},
			8192, detect.Default, "does not say", ""},
		{"a redirect is not followed", "m", paths{listPath: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "/elsewhere": says200(`{"data":[{"id":"m","max_model_len":40960}]}`)},
			8192, detect.Default, "does not say", "302 Found"},
		{"a huge answer", "m", paths{listPath: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"data":[{"id":"m","max_model_len":40960}],"padding":"%s"}`, strings.Repeat("x", maxDescription))
		}}, 8192, detect.Default, "does not say", "larger than 8 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := describe(t, tt.paths)
			m := detecting(t, d, ModelConfig{Model: tt.model}, nil)
			expect.Equal(t, d.requests(), 0, "requests of New")
			if w, _ := m.Window("chat"); w != 8192 {
				t.Errorf("before: %d", w)
			}
			m.Detect(t.Context())
			before := d.requests()
			got := m.Limits("chat")[0]
			if l := got.Limit; l.Tokens != tt.tokens || l.Label != tt.label || !strings.Contains(l.Source, tt.source) {
				t.Errorf("got %v", l)
			}
			all := strings.Join(got.Steps, "\n")
			if !strings.Contains(all, tt.step) || strings.Contains(all, testKey) || strings.Contains(all, d.URL) {
				t.Errorf("steps:\n%s", all)
			}
			if w, out := m.Window("chat"); w != tt.tokens || out > w/2 {
				t.Errorf("window %d, of it %d for the answer", w, out)
			}
			if m.Limit("a") != got.Limit || d.requests() != before {
				t.Error("Limit says another thing, or looking asked the server")
			}
		})
	}
}

// TestDetectServer: the other facts that servers report beside the window.
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
		{"ollama, not loaded", paths{psPath: ps(""), showPath: show(131072, "")}, detect.Ollama, 131072, 0, true},
		{"ollama, a Modelfile sets it", paths{psPath: ps(""), showPath: show(131072, "num_ctx 16384")}, detect.Ollama, 131072, 0, false},
		{"ollama, all on the GPU", paths{psPath: ps(`{"name":"m","size":100,"size_vram":100,"context_length":8192}`)}, detect.Ollama, 0, 0, false},
		{"ollama, a quarter is not", paths{psPath: ps(`{"name":"m","size":100,"size_vram":75,"context_length":8192}`)}, detect.Ollama, 0, 25, false},
		{"ollama, hardly any is not", paths{psPath: ps(`{"name":"m","size":1000,"size_vram":999,"context_length":8192}`)}, detect.Ollama, 0, 1, false},
		{"ollama, no sizes", paths{psPath: ps(`{"name":"m","context_length":8192}`)}, detect.Ollama, 0, 0, false},
		{"ollama, no size on the GPU", paths{psPath: ps(`{"name":"m","size":7,"size_vram":null,"context_length":8192}`)}, detect.Ollama, 0, 0, false},
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
			if got.Server != tt.server || got.Trained != tt.trained || got.OffGPU != tt.outside || got.Limit.LowerBound != tt.least || !got.Answered {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestDetectSlow(t *testing.T) {
	hangs := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server see that its client is gone
		<-r.Context().Done()
	}
	d := describe(t, map[string]http.HandlerFunc{"*": hangs, listPath: says200(`{"data":[{"id":"m","max_model_len":16384}]}`)})
	m := detecting(t, d, ModelConfig{}, func(c *Config) { c.Detect = 500 * time.Millisecond })
	m.Detect(t.Context())
	got := m.Limits("chat")[0]
	if got.Limit.Tokens != 16384 || !strings.Contains(strings.Join(got.Steps, "\n"), "ollama /api/ps: no answer within 500ms") {
		t.Errorf("%v\n%s", got.Limit, strings.Join(got.Steps, "\n"))
	}
}

func TestDetectUnreachable(t *testing.T) {
	d := describe(t, nil)
	m := detecting(t, d, ModelConfig{}, nil)
	d.Close()
	m.Detect(t.Context())
	got := m.Limits("chat")[0]
	if got.Limit.Label != detect.Default || !strings.Contains(strings.Join(got.Steps, "\n"), "refused") {
		t.Errorf("%v\n%s", got.Limit, strings.Join(got.Steps, "\n"))
	}
	if !m.models[0].unanswered() {
		t.Error("a server that is down would not be asked again")
	}
}

func TestConfiguredWindowWins(t *testing.T) {
	d := describe(t, map[string]http.HandlerFunc{listPath: says200(`{"data":[{"id":"m","max_model_len":16384}]}`)})
	m := detecting(t, d, ModelConfig{Window: 30000, MaxOutput: 20000}, nil)
	m.Detect(t.Context())
	got := m.Limits("chat")[0]
	if l := got.Limit; l.Tokens != 30000 || l.Source != "configured" || d.requests() != 0 {
		t.Errorf("%v after %d requests", l, d.requests())
	}
	if len(got.Steps) != 2 || !strings.Contains(got.Steps[0], "configured: 30000") {
		t.Errorf("steps %q", got.Steps)
	}
	if w, out := m.Window("chat"); w != 30000 || out != 20000 {
		t.Error(w, out)
	}
}

// An unconfigured small window leaves room for a request.
func TestOutputOfDetectedWindow(t *testing.T) {
	for _, tt := range []struct{ window, configured, want int }{
		{4096, 0, 1024}, {4096, 2048, 1024}, {4096, 500, 500}, {8192, 0, 2048}, {8192, 6000, 4096}, {131072, 0, 2048}, {131072, 6000, 6000},
	} {
		d := describe(t, map[string]http.HandlerFunc{listPath: says200(fmt.Sprintf(`{"data":[{"id":"m","max_model_len":%d}]}`, tt.window))})
		m := detecting(t, d, ModelConfig{MaxOutput: tt.configured}, nil)
		m.Detect(t.Context())
		if w, out := m.Window("chat"); w != tt.window || out != tt.want {
			t.Errorf("%+v: got %d, %d", tt, w, out)
		}
	}
}

func TestManyCallersAskOnce(t *testing.T) {
	release := make(chan struct{})
	d := describe(t, map[string]http.HandlerFunc{"*": func(w http.ResponseWriter, r *http.Request) { <-release; http.NotFound(w, r) }})
	base := time.Unix(1e9, 0)
	var mu sync.Mutex
	n := 0
	m := detecting(t, d, ModelConfig{}, func(c *Config) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); n++; return base.Add(time.Duration(n) * time.Second) }
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { m.Detect(t.Context()) })
	}
	for { // all 20 have come
		mu.Lock()
		came := n
		mu.Unlock()
		if came >= 20 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	expect.Equal(t, d.requests(), 5, "requests")
}

const chatPath = "/v1/chat/completions"

// long returns a request of about n tokens.
func long(n int) Request {
	return Request{Messages: []Message{{Role: User, Content: strings.Repeat("word ", n*100/(5*costLower))}}}
}

func TestRefusalsTeach(t *testing.T) {
	tests := []struct {
		name, body string
		code       int
		req        Request
		tokens     int // the window afterwards
		label      detect.Label
	}{
		{"openai", `{"error":{"message":"This model's maximum context length is 4097 tokens. However, you requested 5000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 400, hello, 4097, detect.Enforced},
		{"larger than thought", `{"error":{"message":"This endpoint's maximum context length is 131,072 tokens. However, you requested about 140000","code":400}}`, 400, hello, 131072, detect.Enforced},
		{"vllm", `{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model length of 2048. Make sure that max_model_len is no smaller; reduce the length","code":400}`, 400, hello, 2048, detect.Enforced},
		{"llama.cpp, in a field", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":7000,"n_ctx":6144}}`, 400, hello, 6144, detect.Enforced},
		{"llama.cpp, in words", `{"error":{"message":"request (7000 tokens) exceeds the available context size (6144 tokens), try increasing it"}}`, 400, hello, 6144, detect.Enforced},
		{"anthropic", `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, 400, hello, 200000, detect.Enforced},
		{"google", `{"error":{"message":"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576)."}}`, 400, hello, 1048576, detect.Enforced},
		{"lm studio", `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}`, 400, hello, 4096, detect.Enforced},
		{"no number", `{"error":{"message":"prompt too long"}}`, 400, long(3000), 3783, detect.Estimated},
		{"a proxy", `<html>too large</html>`, 413, long(6000), 6036, detect.Estimated},
		{"no number, and a small request", `{"error":{"message":"prompt too long"}}`, 400, hello, 8192, detect.Default},
		{"an absurd number", `{"error":{"message":"maximum context length is 12 tokens"}}`, 400, hello, 8192, detect.Default},
		{"another error with a number", `{"error":{"message":"rate: model length is 2048"}}`, 500, hello, 8192, detect.Default},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := describe(t, map[string]http.HandlerFunc{chatPath: status(tt.code, tt.body)})
			m := detecting(t, d, ModelConfig{}, nil)
			if _, err := m.Complete(t.Context(), "chat", tt.req, nil); err == nil {
				t.Fatal("no error")
			}
			l := m.Limit("a")
			if near := l.Tokens - tt.tokens; l.Label != tt.label || near < -60 || near > 60 || tt.label != detect.Estimated && near != 0 {
				t.Errorf("got %v", l)
			}
			if tt.label != detect.Default && !strings.HasPrefix(l.Source, "learned") {
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

// A learned window expires, or is dropped once the server reports another one.
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
	now = now.Add(maxLearnedAge)
	is(32768)
}

// Ollama silently drops the beginning of a request that is too large.
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

// A model unloaded while idle keeps its window.
func TestUnloadedModelKeepsItsWindow(t *testing.T) {
	d := describe(t, map[string]http.HandlerFunc{psPath: ps(`{"name":"m:latest","context_length":16384}`), showPath: show(131072, "")})
	m := detecting(t, d, ModelConfig{}, nil)
	m.Detect(t.Context())
	d.set(psPath, ps(""))
	m.Detect(t.Context())
	if l := m.Limit("a"); l.Tokens != 16384 || l.Label != detect.Enforced {
		t.Errorf("unloaded: %v", l)
	}
	d.set(psPath, ps(`{"name":"m:latest","context_length":4096}`))
	m.Detect(t.Context())
	if l := m.Limit("a"); l.Tokens != 4096 {
		t.Errorf("loaded anew: %v", l)
	}
}

// The first answer loads the model; then the server is asked again.
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
