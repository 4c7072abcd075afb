package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

// scripted is a server that answers each request with the next step, and repeats the last one.
type scripted struct {
	*httptest.Server
	mu     sync.Mutex
	steps  []http.HandlerFunc
	bodies []map[string]any // of the requests, in order
	raw    []string
	auth   []string
}

func script(t *testing.T, steps ...http.HandlerFunc) *scripted {
	t.Helper()
	s := &scripted{steps: steps}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		raw, err := io.ReadAll(r.Body)
		expect.Equal(t, r.ContentLength, int64(len(raw)), "length said of a body of %d bytes", len(raw))
		if err == nil && len(raw) > 0 {
			err = json.Unmarshal(raw, &body)
		}
		if err != nil {
			t.Errorf("request body: %v", err)
		}
		s.mu.Lock()
		step := s.steps[min(len(s.bodies), len(s.steps)-1)]
		s.bodies, s.raw = append(s.bodies, body), append(s.raw, string(raw))
		s.auth = append(s.auth, r.Header.Get("Authorization"))
		s.mu.Unlock()
		step(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *scripted) body(i int) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[i]
}

// events answers with an event stream of these data lines.
func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			fmt.Fprintf(w, "data: %s\n\n", l)
			w.(http.Flusher).Flush()
		}
	}
}

// answers answers with these pieces of text.
func answers(pieces ...string) http.HandlerFunc {
	var lines []string
	for _, p := range pieces {
		text, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		lines = append(lines, `{"choices":[{"index":0,"delta":{"content":`+string(text)+`}}]}`)
	}
	return events(append(lines, finishStop, usageLine, "[DONE]")...)
}

const (
	finishStop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usageLine  = `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}`
)

// status answers with an error.
func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// waits records the requested delays without sleeping.
type waits struct{ ds []time.Duration }

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.ds = append(w.ds, d)
	return ctx.Err()
}

const testKey = "sk-secret-0123456789"

// setup returns a set of models, one per URL, named a, b, c …
func setup(t *testing.T, w *waits, log io.Writer, urls ...string) *Models {
	t.Helper()
	cfg := Config{Retry: Retry{Sleep: w.sleep}}
	if log != nil {
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	}
	for i, u := range urls {
		cfg.Models = append(cfg.Models, ModelConfig{Name: string(rune('a' + i)), BaseURL: u, APIKey: testKey, Model: "m"})
	}
	return New(cfg)
}

var hello = Request{Messages: []Message{{Role: User, Content: "hello"}}}

func ask(t *testing.T, m *Models, req Request) Reply {
	t.Helper()
	return expect.Must(m.Complete(t.Context(), "chat", req, nil))(t)
}

func kindOf(t *testing.T, err error) Kind {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("no *Error: %v", err)
	}
	return e.Kind
}

func TestStreams(t *testing.T) {
	s := script(t, answers("Hel", "lo ", "there", "."))
	var log strings.Builder
	m := setup(t, &waits{}, &log, s.URL)
	var seen []string
	got := expect.Must(m.Complete(t.Context(), "chat", hello, func(text string) { seen = append(seen, text) }))(t)
	if got.FirstToken <= 0 || !strings.Contains(log.String(), "prompt_tokens=12 cached_tokens=8 output_tokens=3 finish=stop first_token=") {
		t.Errorf("began after %v; log: %s", got.FirstToken, log.String())
	}
	got.FirstToken = 0
	want := Reply{Text: "Hello there.", Finish: "stop", Usage: Usage{Prompt: 12, Cached: 8, Output: 3}, Model: "a"}
	expect.NoDiff(t, got, want, "")
	expect.NoDiff(t, seen, []string{"Hel", "Hello", "Hello there", "Hello there."}, "")
	body := s.body(0)
	if body["stream"] != true || body["max_tokens"] != float64(defaultMaxOutput) || body["model"] != "m" {
		t.Errorf("request: %v", body)
	}
	if o, ok := body["stream_options"].(map[string]any); !ok || o["include_usage"] != true {
		t.Errorf("stream_options: %v", body["stream_options"])
	}
	expect.Equal(t, s.auth[0], "Bearer "+testKey, "key was not sent")
}

func TestThinkingStaysApart(t *testing.T) {
	s := script(t, events(
		`{"choices":[{"delta":{"reasoning_content":"field one"}}]}`,
		`{"choices":[{"delta":{"reasoning":" field two"}}]}`,
		`{"choices":[{"delta":{"content":"<thi"}}]}`,
		`{"choices":[{"delta":{"content":"nk>secret plan</th"}}]}`,
		`{"choices":[{"delta":{"content":"ink>\n\nHi"}}]}`,
		finishStop, "[DONE]"))
	m := setup(t, &waits{}, nil, s.URL)
	var seen []string
	got := expect.Must(m.Complete(t.Context(), "chat", hello, func(text string) { seen = append(seen, text) }))(t)
	expect.Equal(t, got.Text, "Hi")
	expect.NoDiff(t, seen, []string{"Hi"}, "")
}

// After a closing tag without an opening one, the next answer shows nothing before its closing tag.
func TestLoneClosingTagIsRemembered(t *testing.T) {
	s := script(t, answers("secret ", "plan", "</think>", "Hi"))
	m := setup(t, &waits{}, nil, s.URL)
	ask(t, m, hello)
	var seen []string
	got, err := m.Complete(t.Context(), "chat", hello, func(text string) { seen = append(seen, text) })
	if err != nil || got.Text != "Hi" {
		t.Fatalf("got %+v, %v", got, err)
	}
	expect.NoDiff(t, seen, []string{"Hi"}, "")
}

func TestToolCallFragments(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []ToolCall // "?" as ID: any
	}{
		{"joined by index", []string{
			`[{"index":0,"id":"c1","function":{"name":"task","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"a\""}},{"index":1,"id":"c2","function":{"name":"read_file","arguments":"{}"}}]`,
			`[{"index":0,"function":{"arguments":":1}"}}]`,
		}, []ToolCall{{"c1", "task", `{"a":1}`}, {"c2", "read_file", "{}"}}},
		{"no index, no id", []string{
			`[{"function":{"name":"task","arguments":"{\"n\":1}"}}]`,
			`[{"function":{"name":"task","arguments":"{\"n\":2}"}}]`,
		}, []ToolCall{{"?", "task", `{"n":1}`}, {"?", "task", `{"n":2}`}}},
		{"all of index 0", []string{
			`[{"index":0,"id":"c1","function":{"name":"task","arguments":"{}"}}]`,
			`[{"index":0,"id":"c2","function":{"name":"task","arguments":"{}"}}]`,
		}, []ToolCall{{"c1", "task", "{}"}, {"c2", "task", "{}"}}},
		{"broken arguments pass", []string{
			`[{"index":0,"id":"c1","function":{"name":"task","arguments":"{\"a\": oops"}}]`,
		}, []ToolCall{{"c1", "task", `{"a": oops`}}},
		{"arguments as an object", []string{
			`[{"index":0,"id":"c1","function":{"name":"task","arguments":{"a":1}}}]`,
		}, []ToolCall{{"c1", "task", `{"a":1}`}}},
		{"name in every fragment, same id twice", []string{
			`[{"index":0,"id":"c1","function":{"name":"task","arguments":"{"}}]`,
			`[{"index":0,"id":"c1","function":{"name":"task","arguments":"}"}}]`,
			`[{"index":1,"id":"c1","function":{"name":"task","arguments":"{}"}}]`,
		}, []ToolCall{{"c1", "task", "{}"}, {"?", "task", "{}"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			for _, l := range tt.lines {
				lines = append(lines, `{"choices":[{"delta":{"tool_calls":`+l+`}}]}`)
			}
			lines = append(lines, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
			got := ask(t, setup(t, &waits{}, nil, script(t, events(lines...)).URL), hello).ToolCalls
			ids := map[string]bool{}
			for i := range got {
				if got[i].ID == "" || ids[got[i].ID] {
					t.Errorf("call %d: id %q is empty or not its own", i, got[i].ID)
				}
				ids[got[i].ID] = true
				if i < len(tt.want) && tt.want[i].ID == "?" {
					got[i].ID = "?"
				}
			}
			expect.NoDiff(t, got, tt.want, "")
		})
	}
}

func TestFailover(t *testing.T) {
	down, up := script(t, status(500, "")), script(t, answers("from b"))
	cfg := Config{
		Models: []ModelConfig{{Name: "a", BaseURL: down.URL, Model: "m"}, {Name: "b", BaseURL: up.URL, Model: "m", Window: 100, MaxOutput: 10}},
		Roles:  map[string][]string{"chat": {"a", "b"}, "dreaming": {"b"}},
		Retry:  Retry{Sleep: (&waits{}).sleep},
	}
	m := New(cfg)
	if got := ask(t, m, hello); got.Text != "from b" || got.Model != "b" || down.requests() != 3 {
		t.Errorf("got %+v after %d requests to a", got, down.requests())
	}
	if _, err := m.Complete(t.Context(), "dreaming", hello, nil); err != nil || down.requests() != 3 {
		t.Errorf("dreaming: %v; requests to a: %d", err, down.requests())
	}
	if _, err := m.Complete(t.Context(), "no such role", hello, nil); err != nil || down.requests() != 6 {
		t.Errorf("an unknown role is not chat: %v, %d", err, down.requests())
	}
	if w, o := m.Window("dreaming"); w != 100 || o != 10 {
		t.Errorf("window %d, %d", w, o)
	}
	if w, o := m.Window("chat"); w != 8192 || o != 2048 {
		t.Errorf("window %d, %d", w, o)
	}
	expect.NoDiff(t, m.Names(), []string{"a", "b"}, "")
}

func TestFinishLengthIsKept(t *testing.T) {
	s := script(t, events(`{"choices":[{"delta":{"content":"cut of"},"finish_reason":"length"}]}`, "[DONE]"))
	if got := ask(t, setup(t, &waits{}, nil, s.URL), hello); got.Finish != "length" || got.Text != "cut of" {
		t.Errorf("%+v", got)
	}
}

func TestUnusualServers(t *testing.T) {
	tests := []struct {
		name string
		step http.HandlerFunc
		want string
	}{
		{"ignores stream", status(200, "{\"choices\":[{\"message\":{\"role\":\"assistant\",\n\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}"), "whole"},
		{"no finish reason", events(`{"choices":[{"delta":{"content":"all"}}]}`, "[DONE]"), "all"},
		{"no DONE", events(`{"choices":[{"delta":{"content":"all"},"finish_reason":"stop"}]}`), "all"},
		{"error null in each event", events(`{"error":null,"choices":[{"delta":{"content":"all"},"finish_reason":"stop"}]}`), "all"},
		{"content in parts", events(`{"choices":[{"delta":{"content":[{"type":"text","text":"all"}]},"finish_reason":"stop"}]}`), "all"},
		{"a refusal", events(`{"choices":[{"delta":{"refusal":"I won't"},"finish_reason":"stop"}]}`), "I won't"},
		{"comments and event names", status(200, strings.Repeat(": still here\n\n", 400)+
			"event: x\ndata:{\"choices\":[{\"delta\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]"), "all"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := script(t, tt.step)
			if got := ask(t, setup(t, &waits{}, nil, s.URL), hello); got.Text != tt.want || got.Finish != "stop" || s.requests() != 1 {
				t.Errorf("%+v after %d requests", got, s.requests())
			}
		})
	}
}

// The receiver's time does not count as silence of the server.
func TestReceiverTimeDoesNotCount(t *testing.T) {
	w := &watch{limit: time.Hour, timer: time.NewTimer(time.Hour)}
	a := answer{watch: w, stream: func(string) {
		if w.timer.Stop() {
			t.Error("the timer ran")
		}
	}}
	a.show("text")
	if !w.timer.Stop() {
		t.Error("the timer did not go on")
	}
}

func TestNoModels(t *testing.T) {
	m := New(Config{})
	_, err := m.Complete(t.Context(), "chat", hello, nil)
	if kindOf(t, err) != NotFound || !strings.Contains(err.Error(), "no model is configured") {
		t.Error(err)
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	c := ModelConfig{Name: "a", Model: "m", APIKey: testKey}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "model", c)
	out := fmt.Sprintf("%v %+v %#v %v %s", c, c, c, Config{Models: []ModelConfig{c}}, &log)
	if strings.Contains(out, testKey) {
		t.Error(out)
	}
}

// Extracting the visible text reads all of it, so for a long answer this is done less often.
func TestLongAnswerIsLookedAtLessOften(t *testing.T) {
	pieces := strings.SplitAfter(strings.Repeat("word ", 20_000), " ")
	m := setup(t, &waits{}, nil, script(t, answers(pieces...)).URL)
	looks, last := 0, ""
	got, err := m.Complete(t.Context(), "chat", hello, func(text string) { looks, last = looks+1, text })
	if err != nil || last != got.Text || len(strings.Fields(last)) != 20_000 {
		t.Fatalf("%v; %d bytes shown of %d", err, len(last), len(got.Text))
	}
	if looks > 1_200 {
		t.Errorf("an answer of 20,000 words was shown %d times", looks)
	}
}
