package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/test/expect"
)

func TestRetriesThenAnswers(t *testing.T) {
	drop := func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		c.Close()
	}
	tests := []struct {
		name     string
		first    http.HandlerFunc
		min, max time.Duration
	}{
		{"429 with seconds", status(429, `{"error":{"message":"slow down"}}`, "Retry-After", "7"), 7 * time.Second, 7 * time.Second},
		{"429 asking too much", status(429, `{}`, "Retry-After", "86400"), 30 * time.Second, 30 * time.Second},
		{"429 with nonsense", status(429, `{}`, "Retry-After", "soon"), 375 * time.Millisecond, 625 * time.Millisecond},
		{"500", status(500, "oops"), 375 * time.Millisecond, 625 * time.Millisecond},
		{"503 with a web page", status(503, "<html>down</html>"), 375 * time.Millisecond, 625 * time.Millisecond},
		{"connection dropped", drop, 375 * time.Millisecond, 625 * time.Millisecond},
		{"stream broke", events(`{"choices":[{"delta":{"content":"half"}}]}`), 375 * time.Millisecond, 625 * time.Millisecond},
		{"error in the stream", events(`{"choices":[{"delta":{"content":"half"}}]}`, `{"error":{"message":"out of memory"}}`), 375 * time.Millisecond, 625 * time.Millisecond},
		{"error in the stream as text", events(`{"error":"out of memory"}`), 375 * time.Millisecond, 625 * time.Millisecond},
		{"empty", answers(), 375 * time.Millisecond, 625 * time.Millisecond},
		{"web page", status(200, "<!DOCTYPE html><title>Log in</title>"), 375 * time.Millisecond, 625 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, w := script(t, tt.first, answers("fine")), &waits{}
			if got := ask(t, setup(t, w, nil, s.URL), hello); got.Text != "fine" {
				t.Errorf("got %q", got.Text)
			}
			if len(w.ds) != 1 || w.ds[0] < tt.min || w.ds[0] > tt.max {
				t.Errorf("waited %v, want once from %v to %v", w.ds, tt.min, tt.max)
			}
		})
	}
}

func TestBackOffGrowsAndEnds(t *testing.T) {
	s, w := script(t, status(500, "oops")), &waits{}
	m := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "m"}}, Retry: Retry{Attempts: 5, Sleep: w.sleep}})
	_, err := m.Complete(t.Context(), "chat", hello, nil)
	if kindOf(t, err) != Failed || s.requests() != 5 {
		t.Errorf("%v after %d requests", err, s.requests())
	}
	for i, base := range []float64{0.5, 2, 8, 8} {
		if got := w.ds[i].Seconds(); got < base*0.75 || got > base*1.25 {
			t.Errorf("wait %d: %v s, want about %v", i, got, base)
		}
	}
}

func TestKinds(t *testing.T) {
	tests := []struct {
		name  string
		step  http.HandlerFunc
		kind  Kind
		tries int
	}{
		{"key refused", status(401, `{"error":{"message":"Incorrect API key provided: `+testKey+`","type":"invalid_request_error"}}`), Denied, 1},
		{"forbidden", status(403, "no"), Denied, 1},
		{"no money", status(402, `{"error":{"message":"pay"}}`), Denied, 1},
		{"quota used up", status(429, `{"error":{"message":"x","code":"insufficient_quota"}}`), Denied, 1},
		{"rate limit", status(429, `{"error":{"message":"slow down"}}`), RateLimited, 3},
		{"no such model", status(404, `{"error":{"message":"model 'nope' not found","type":"not_found_error"}}`), NotFound, 1},
		{"too large, OpenAI", status(400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`), TooLarge, 1},
		{"too large, llama.cpp", status(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), TooLarge, 1},
		{"too large, proxy", status(413, "<html>413</html>"), TooLarge, 1},
		{"too large, text only", status(400, `{"error":"input length exceeds the context length"}`), TooLarge, 1},
		{"bad request", status(400, `{"error":{"message":"no"}}`), Failed, 1},
		{"5xx", status(500, ""), Failed, 3},
		{"empty", answers("  ", "\n"), Empty, 2},
		{"only thinking", answers("<think>hm</think>"), Empty, 2},
		{"nothing but DONE", events("[DONE]"), Empty, 2},
		{"thinking used it all up", events(`{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"length"}]}`, "[DONE]"), Empty, 1},
		{"web page", status(200, "<!DOCTYPE html>"), Garbled, 2},
		{"no body", status(200, ""), Garbled, 2},
		{"broken JSON", events(`{"choices":[{`), Garbled, 2},
		{"wrong JSON", events(`{"choices":"none"}`), Garbled, 2},
		{"not UTF-8", events("{\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}"), Garbled, 2},
		{"stream always breaks", events(`{"choices":[{"delta":{"content":"half"}}]}`), Unreachable, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			s := script(t, tt.step)
			_, err := setup(t, &waits{}, &log, s.URL).Complete(t.Context(), "chat", hello, nil)
			if got := kindOf(t, err); got != tt.kind || s.requests() != tt.tries {
				t.Errorf("%v after %d requests, want %v after %d; %v", got, s.requests(), tt.kind, tt.tries, err)
			}
			if strings.Contains(err.Error()+log.String(), testKey) {
				t.Errorf("the key shows: %v\n%s", err, &log)
			}
			expect.Equal(t, strings.Count(log.String(), "\n"), 1, "log lines for one request:\n%s", &log)
			var e *Error
			errors.As(err, &e)
			if calm := e.ForPeople(); !strings.Contains(calm.String(), "“a”") || strings.ContainsAny(calm.String(), "{<\n") {
				t.Errorf("Calm: %s", calm)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	w := &waits{}
	_, err := setup(t, w, nil, gone.URL).Complete(t.Context(), "chat", hello, nil)
	if kindOf(t, err) != Unreachable || len(w.ds) != 2 || !strings.Contains(err.Error(), gone.URL) {
		t.Errorf("%v after %d waits", err, len(w.ds))
	}
}

// A local server that is loading the model is waited for, longer than for other errors.
func TestWaitsForLoading(t *testing.T) {
	loading := status(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`)
	s := script(t, loading, loading, loading, loading, loading, answers("awake"))
	if got := ask(t, setup(t, &waits{}, nil, s.URL), hello); got.Text != "awake" {
		t.Errorf("got %q", got.Text)
	}
}

func TestFailoverErrors(t *testing.T) {
	big := status(400, `{"error":{"message":"prompt is too long"}}`)
	tests := []struct {
		name string
		a, b http.HandlerFunc
		kind Kind
		of   string
	}{
		{"the first one's", status(401, "no"), status(429, "x"), Denied, "a"},
		{"too large goes first", status(401, "no"), big, TooLarge, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := setup(t, &waits{}, nil, script(t, tt.a).URL, script(t, tt.b).URL)
			_, err := m.Complete(t.Context(), "chat", hello, nil)
			var e *Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Model != tt.of {
				t.Errorf("%v", err)
			}
			if !strings.Contains(err.Error(), "a: ") || !strings.Contains(err.Error(), "b: ") {
				t.Errorf("a cause is missing: %v", err)
			}
		})
	}
}

func TestCancelEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := script(t, func(w http.ResponseWriter, r *http.Request) {
		events(`{"choices":[{"delta":{"content":"begun"}}]}`)(w, r)
		<-r.Context().Done()
	})
	w := &waits{}
	_, err := setup(t, w, nil, s.URL, s.URL).Complete(ctx, "chat", hello, func(string) { cancel() })
	if err != context.Canceled || len(w.ds) != 0 || s.requests() != 1 {
		t.Errorf("%v, %d waits, %d requests", err, len(w.ds), s.requests())
	}

	s2 := script(t, status(500, ""))
	ctx2, cancel2 := context.WithCancel(t.Context())
	m := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: s2.URL, Model: "m"}},
		Retry: Retry{Sleep: func(ctx context.Context, d time.Duration) error { cancel2(); return sleep(ctx, time.Hour) }}})
	if _, err := m.Complete(ctx2, "chat", hello, nil); err != context.Canceled || s2.requests() != 1 {
		t.Errorf("in back-off: %v, %d requests", err, s2.requests())
	}
}

func TestTimeouts(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stall := func(w http.ResponseWriter, r *http.Request) {
		events(`{"choices":[{"delta":{"content":"begun"}}]}`)(w, r)
		<-r.Context().Done()
	}
	const short = 20 * time.Millisecond
	tests := []struct {
		name string
		step http.HandlerFunc
		cfg  Config
		text string
	}{
		{"never begins", hang, Config{FirstToken: short}, "did not begin"},
		{"stops", stall, Config{Idle: short}, "stopped in the middle"},
		{"too long in all", stall, Config{Models: []ModelConfig{{Timeout: short}}}, "longer than the model's timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := script(t, tt.step)
			if tt.cfg.Models == nil {
				tt.cfg.Models = make([]ModelConfig, 1)
			}
			c := &tt.cfg.Models[0]
			c.Name, c.BaseURL, c.Model = "a", s.URL, "m"
			m := New(tt.cfg)
			_, err := m.Complete(t.Context(), "chat", hello, nil)
			if kindOf(t, err) != TimedOut || !strings.Contains(err.Error(), tt.text) || s.requests() > 1 {
				t.Errorf("%v after %d requests", err, s.requests())
			}
		})
	}
}

// optionalParts are the parts of a request that some servers refuse.
func optionalParts(body map[string]any) string {
	var all []string
	add := func(is bool, part string) {
		if is {
			all = append(all, part)
		}
	}
	add(thinking(body) != "", thinking(body))
	add(body["temperature"] != nil, fmt.Sprint("t=", body["temperature"]))
	add(markedIn(body) != nil, fmt.Sprint("marks", markedIn(body)))
	add(body["tools"] != nil, "tools")
	add(body["stream_options"] == nil, "no-counts")
	add(body["max_completion_tokens"] != nil && body["max_tokens"] == nil, "new-limit")
	return strings.Join(all, " ")
}

// TestLearnsWhatServersRefuse: a refused part is left out from then on, without a failed try and
// with one log line. If the server does not name the part, parts are tried one by one, temperature
// last, and only the culprit is learned. A request that is bad otherwise fails with the server's
// text, and teaches nothing.
func TestLearnsWhatServersRefuse(t *testing.T) {
	bad := func(text string) http.HandlerFunc { return status(400, `{"error":{"message":"`+text+`"}}`) }
	cold, own := float32(0), float32(0.5)
	noArgument, noTemplate := bad("Unrecognized request argument supplied: reasoning_effort"), bad("Unrecognized request argument supplied: chat_template_kwargs")
	vague := bad("bad request")
	marked := loop
	marked.Marks = []int{0, 3}
	noParts := status(422, `{"detail":[{"loc":["body","messages",0,"content"],"msg":"Input should be a valid string"}]}`)
	user := hello.Messages
	type steps = []http.HandlerFunc
	tests := []struct {
		name    string
		config  ModelConfig
		req     Request
		steps   steps    // refusals before the answer
		want    []string // what the requests hold, once more than refusals
		then    string   // what one afterwards holds
		again   Think    // of the one afterwards; "" = the same
		learned quirk
		fails   string // of a request that fails each time
	}{
		{name: "stream_options", req: hello, steps: steps{bad("Unrecognized request argument supplied: stream_options")},
			want: []string{"", "no-counts"}, then: "no-counts", learned: noStreamOptions},
		{name: "tools", req: Request{Messages: user, Tools: []ToolSpec{{Name: "task", Description: "d"}}},
			steps: steps{bad("registry.ollama.ai/library/x does not support tools")}, want: []string{"tools", ""}, learned: noTools},
		{name: "max_tokens", req: hello, steps: steps{bad("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")},
			want: []string{"", "new-limit"}, then: "new-limit", learned: newMaxTokens},

		{name: "a temperature", req: Request{Messages: user, Temperature: &own}, want: []string{"t=0.5"}, then: "t=0.5"},
		{name: "zero", req: Request{Messages: user, Temperature: &cold}, want: []string{"t=1e-45"}, then: "t=1e-45"},
		{name: "the configured one", config: ModelConfig{Temperature: &cold}, req: Request{Messages: user, Temperature: &own},
			want: []string{"t=1e-45"}, then: "t=1e-45"},
		{name: "temperature refused", req: Request{Messages: user, Temperature: &own}, steps: steps{bad("invalid temperature: only 1 is allowed for this model")},
			want: []string{"t=0.5", ""}, learned: noTemperature},
		{name: "temperature refused, vaguely", req: Request{Messages: user, Temperature: &own}, steps: steps{vague}, want: []string{"t=0.5", ""}, learned: noTemperature},
		{name: "configured and refused", config: ModelConfig{Temperature: &own}, req: Request{Messages: user, Temperature: &cold},
			steps: steps{bad("Unknown parameter: temperature")}, want: []string{"t=0.5", ""}, learned: noTemperature},
		{name: "a temperature that was not sent", req: hello, steps: steps{bad("temperature is not supported")}, want: []string{""}, fails: "temperature is not"},
		{name: "the temperature goes last", req: Request{Messages: user, Think: thinkHigh, Temperature: &own}, steps: steps{vague, vague},
			want: []string{"high t=0.5", "t=0.5", ""}, then: "high", learned: noTemperature},

		{name: "thinking", req: Request{Messages: user, Think: ThinkOff}, want: []string{"none+template"}, then: "high", again: thinkHigh},
		{name: "thinking as usual", req: hello, want: []string{""}, then: "medium", again: thinkMedium},
		{name: "unknown argument", req: Request{Messages: user, Think: thinkHigh}, steps: steps{noArgument}, want: []string{"high", ""}, learned: noThink},
		{name: "Ollama, level", req: Request{Messages: user, Think: thinkMedium},
			steps: steps{status(500, `{"error":{"message":"think value \"medium\" is not supported for this model"}}`)},
			want:  []string{"medium", ""}, then: "none+template", again: ThinkOff, learned: noThink},
		{name: "Ollama, no thinking", req: Request{Messages: user, Think: thinkLow}, steps: steps{bad("registry.ollama.ai/library/x does not support thinking")},
			want: []string{"low", ""}, learned: noThink},
		{name: "cannot stop", req: Request{Messages: user, Think: ThinkOff},
			steps: steps{bad("Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', and 'high'.")},
			want:  []string{"none+template", "low+template"}, then: "high", again: thinkHigh, learned: noThinkOff},
		{name: "no template", req: Request{Messages: user, Think: ThinkOff}, steps: steps{noTemplate}, want: []string{"none+template", "none"}, then: "none", learned: noTemplateArgs},
		{name: "knows nothing", req: Request{Messages: user, Think: ThinkOff}, steps: steps{noTemplate, noArgument, noArgument},
			want: []string{"none+template", "none", "low", ""}, learned: noTemplateArgs | thinkQuirks},
		{name: "names the wrong one", req: Request{Messages: user, Think: ThinkOff}, steps: steps{noArgument, noArgument, noArgument},
			want: []string{"none+template", "low+template", "template", ""}, learned: noTemplateArgs | thinkQuirks},
		{name: "does not say", req: Request{Messages: user, Think: thinkHigh}, steps: steps{vague}, want: []string{"high", ""}, learned: noThink},
		{name: "does not say, off", req: Request{Messages: user, Think: ThinkOff}, steps: steps{vague, vague},
			want: []string{"none+template", "none", "low"}, then: "high", again: thinkHigh, learned: noThinkOff},
		{name: "thinking that was not asked for", req: hello, steps: steps{bad("reasoning_effort is odd")}, want: []string{""}, fails: "is odd"},
		{name: "bad by itself", req: Request{Messages: user, Think: ThinkOff}, steps: steps{bad("messages: first message must use the user role")},
			want: []string{"none+template", "none", "low", ""}, fails: "first message"},

		{name: "marks", config: ModelConfig{CacheMarks: true}, req: marked, want: []string{"marks[0 1] tools"}, then: "marks[0 1] tools"},
		{name: "nowhere", config: ModelConfig{CacheMarks: true}, req: marked, steps: steps{noParts},
			want: []string{"marks[0 1] tools", "tools"}, then: "tools", learned: noMarks},
		{name: "does not say, with marks", config: ModelConfig{CacheMarks: true}, req: marked, steps: steps{vague},
			want: []string{"marks[0 1] tools", "tools"}, then: "tools", learned: noMarks},
		{name: "marks and a level", config: ModelConfig{CacheMarks: true}, req: Request{Messages: user, Marks: []int{0}, Think: thinkHigh},
			steps: steps{bad("unknown field reasoning_effort")}, want: []string{"high marks[0]", "marks[0]"}, then: "marks[0]", learned: noThink},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := append(tt.want, tt.then)
			if tt.fails != "" {
				want = append(tt.want, tt.want...)
			} else {
				tt.steps = append(tt.steps, answers("fine"))
			}
			s, w := script(t, tt.steps...), &waits{}
			var log bytes.Buffer
			c := tt.config
			c.Name, c.BaseURL = "a", s.URL
			if c.Model == "" {
				c.Model = "m"
			}
			m := New(Config{Models: []ModelConfig{c}, Retry: Retry{Sleep: w.sleep}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for range 2 {
				got, err := m.Complete(t.Context(), "chat", tt.req, nil)
				if tt.fails == "" && (err != nil || got.Text != "fine") {
					t.Errorf("got %q, %v", got.Text, err)
				}
				if tt.fails != "" && (kindOf(t, err) != Failed || !strings.Contains(err.Error(), tt.fails)) {
					t.Error(err)
				}
				if tt.again != "" {
					tt.req.Think = tt.again
				}
			}
			var got []string
			for i := range s.requests() {
				got = append(got, optionalParts(s.body(i)))
			}
			if d := cmp.Diff(want, got); d != "" || len(w.ds) != 0 {
				t.Errorf("%d waits, %s", len(w.ds), d)
			}
			if known := m.models[0].knownQuirks(); known != tt.learned || m.AcceptsThinking("no such role") != (known&noThink == 0) {
				t.Errorf("learned %b, not %b", known, tt.learned)
			}
			expect.Equal(t, strings.Count(log.String(), "WARN")-strings.Count(log.String(), "model failed"), bits.OnesCount16(uint16(tt.learned)), "log:\n%s", &log)
		})
	}
}

// pixels is a small PNG file.
func pixels(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	expect.OK(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 3))))
	file := filepath.Join(t.TempDir(), "a.png")
	expect.OK(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file
}

// heard answers with a text, and records the requests.
func heard(bodies *[]string, answer func(body string) (status int, text string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*bodies = append(*bodies, string(body))
		code, text := answer(string(body))
		status(code, text)(w, r)
	}
}

func TestPictures(t *testing.T) {
	yes, no := true, false
	can := func(all string) http.HandlerFunc {
		return says200(`{"model_info":{},"parameters":"","capabilities":[` + all + `]}`)
	}
	type paths = map[string]http.HandlerFunc
	for _, tt := range []struct {
		name    string
		config  *bool
		paths   paths
		refuses bool
		sees    bool
		asked   int // requests to the model
	}{
		{"configured", &yes, paths{}, false, true, 1},
		{"configured that it cannot", &no, paths{showPath: can(`"vision"`)}, false, false, 1},
		{"nobody says", nil, paths{}, false, false, 1},
		{"ollama says so", nil, paths{showPath: can(`"completion","vision"`)}, false, true, 1},
		{"ollama says it cannot", nil, paths{showPath: can(`"completion"`)}, false, false, 1},
		{"llama.cpp says so", nil, paths{propsPath: says200(`{"default_generation_settings":{"n_ctx":8192},"modalities":{"vision":true}}`)}, false, true, 1},
		{"configured, but refused", &yes, paths{}, true, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			tt.paths[chatPath] = heard(&bodies, func(body string) (int, string) {
				if tt.refuses && strings.Contains(body, "image_url") {
					return 500, `{"error":{"code":500,"message":"image input is not supported - hint: provide the mmproj"}}`
				}
				return 200, `{"choices":[{"message":{"role":"assistant","content":"seen"},"finish_reason":"stop"}]}`
			})
			m := detecting(t, describe(t, tt.paths), ModelConfig{Window: 8192, Vision: tt.config}, nil)
			ask(t, m, Request{Messages: []Message{{Role: User, Content: "look", Pictures: []Picture{{Name: "cat.png", File: pixels(t), Width: 400, Height: 300}}}}})
			if len(bodies) != tt.asked {
				t.Fatalf("the model was asked %d times, not %d", len(bodies), tt.asked)
			}
			body, line := bodies[len(bodies)-1], "[image cat.png, 400×300: this model cannot see images."
			expect.Equal(t, strings.Contains(body, `"image_url":{"url":"data:image/png;base64,`), tt.sees, "pixels were sent; the request is %s", body)
			if tt.sees {
				line = "[image cat.png, 400×300]"
			}
			if !strings.Contains(body, line) {
				t.Errorf("the line about the image is not there: %s", body)
			}
			expect.Equal(t, m.AcceptsPictures(t.Context(), "chat"), tt.sees, "Sees says")
		})
	}
}

// TestPictureGone: a deleted picture does not fail the request.
func TestPictureGone(t *testing.T) {
	got := contentParts(Message{Role: User, Pictures: []Picture{{Name: "cat.png", File: filepath.Join(t.TempDir(), "none.jpg")}}})
	if len(got) != 1 || got[0].Text != "[image cat.png: it is not kept here any more]" {
		t.Errorf("got %v", got)
	}
}

// TestPictureWithMark: a cache mark goes on the text, and the picture is still sent.
func TestPictureWithMark(t *testing.T) {
	yes := true
	m := newModel(ModelConfig{Name: "m", Model: "x", Window: 8192, Vision: &yes, CacheMarks: true}, withDefaults(Config{}), http.DefaultClient)
	req := Request{Messages: []Message{{Role: User, Content: "look", Pictures: []Picture{{Name: "a", File: pixels(t)}}}}, Marks: []int{0}}
	body := expect.Must(encodeWithMarks(m.buildRequest(req, 0), m.cacheMarks(req, m.messages(req, 0), 0)))(t)
	var sent struct {
		Messages []struct {
			Content []map[string]any `json:"content"`
		} `json:"messages"`
	}
	expect.OK(t, json.Unmarshal(body, &sent))
	if c := sent.Messages[0].Content; len(c) != 2 || c[0]["cache_control"] == nil || c[1]["type"] != "image_url" {
		t.Errorf("sent %s", body)
	}
}

func TestTranscribe(t *testing.T) {
	var bodies []string
	d := describe(t, map[string]http.HandlerFunc{"/v1/audio/transcriptions": heard(&bodies, func(string) (int, string) { return 200, `{"text":" Hello there. "}` })})
	m := detecting(t, d, ModelConfig{Model: "whisper-1", Window: 8192}, func(c *Config) { c.Roles = map[string][]string{"transcription": {"a"}} })
	file := filepath.Join(t.TempDir(), "a.ogg")
	expect.OK(t, os.WriteFile(file, []byte("OggS…"), 0o600))
	text, err := m.Transcribe(t.Context(), file, "a.ogg")
	if err != nil || text != "Hello there." {
		t.Errorf("got %q, %v", text, err)
	}
	if len(bodies) != 1 || !strings.Contains(bodies[0], "OggS…") || !strings.Contains(bodies[0], "whisper-1") {
		t.Errorf("sent %q", bodies)
	}
	if detecting(t, d, ModelConfig{}, nil).Has("transcription") || !m.Has("transcription") { // a chat model does not stand in
		t.Error("who hears and who does not is mixed up")
	}
}
