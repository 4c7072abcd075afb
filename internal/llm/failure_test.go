package llm

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRetriesThenAnswers(t *testing.T) {
	date := time.Now().Add(10 * time.Second).UTC().Format(http.TimeFormat)
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
		{"429 with a date", status(429, `{}`, "Retry-After", date), 5 * time.Second, 10 * time.Second},
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
	m := configured(t, Config{
		Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "m"}},
		Retry:  Retry{Attempts: 5, Sleep: w.sleep},
	})
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
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d log lines for one request:\n%s", n, &log)
			}
			var e *Error
			errors.As(err, &e)
			if calm := e.Calm(); !strings.Contains(calm.String(), `"a"`) || strings.ContainsAny(calm.String(), "{<\n") {
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

// A local server that is still loading the model is waited for, longer than an
// error would be.
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
	m := configured(t, Config{Models: []ModelConfig{{Name: "a", BaseURL: s2.URL, Model: "m"}},
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
			m := configured(t, tt.cfg)
			_, err := m.Complete(t.Context(), "chat", hello, nil)
			if kindOf(t, err) != TimedOut || !strings.Contains(err.Error(), tt.text) || s.requests() > 1 {
				t.Errorf("%v after %d requests", err, s.requests())
			}
		})
	}
}
