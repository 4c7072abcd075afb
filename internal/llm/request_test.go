package llm

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a server does not understand is left out from then on, the answer
// still arrives, and the log says it once.
func TestLearnsWhatServersRefuse(t *testing.T) {
	tests := []struct {
		name, refusal string
		gone          string // key that the next request lacks
		says          string
	}{
		{"stream_options", `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`, "stream_options", "stream_options"},
		{"tools", `{"error":{"message":"registry.ollama.ai/library/x does not support tools"}}`, "tools", "does not support tools"},
		{"max_tokens", `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`, "max_tokens", "max_completion_tokens"},
		{"temperature", `{"error":{"message":"Unsupported value: 'temperature' does not support 0.5"}}`, "temperature", "temperature"},
	}
	req := Request{Messages: hello.Messages, Tools: []ToolSpec{{Name: "task", Description: "d"}}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := script(t, status(400, tt.refusal), answers("fine"))
			var log bytes.Buffer
			warm, w := float32(0.5), &waits{}
			m, err := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Retry: Retry{Sleep: w.sleep},
				Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "m", Temperature: &warm}}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := ask(t, m, req); got.Text != "fine" {
					t.Errorf("got %q", got.Text)
				}
			}
			if s.requests() != 3 || len(w.ds) != 0 {
				t.Errorf("%d requests, %d waits: it was not remembered", s.requests(), len(w.ds))
			}
			if s.body(0)[tt.gone] == nil || s.body(1)[tt.gone] != nil || s.body(2)[tt.gone] != nil {
				t.Errorf("%s: %v, %v, %v", tt.gone, s.body(0)[tt.gone], s.body(1)[tt.gone], s.body(2)[tt.gone])
			}
			if strings.Count(log.String(), "WARN") != 1 || !strings.Contains(log.String(), tt.says) {
				t.Errorf("log:\n%s", &log)
			}
		})
	}
}

// Leaving something out is no failed try: all of them are left for errors.
func TestRefusalsAreNoTries(t *testing.T) {
	s := script(t, status(400, `{"error":"no stream_options"}`), status(500, ""), status(500, ""), answers("fine"))
	if got := ask(t, setup(t, &waits{}, nil, s.URL), hello); got.Text != "fine" {
		t.Errorf("%+v", got)
	}
}

// go-openai refuses some of OpenAI's models by itself, before anything is sent.
func TestLocalRefusals(t *testing.T) {
	s, warm := script(t, answers("fine")), float32(0.5)
	m, err := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "gpt-5-mini", Temperature: &warm}}})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, m, hello)
	if b := s.body(0); b["max_completion_tokens"] != float64(defaultMaxOutput) || b["max_tokens"] != nil || b["temperature"] != nil {
		t.Errorf("%v", b)
	}
}

func TestRequestOnTheWire(t *testing.T) {
	req := Request{
		Messages: []Message{
			{Role: System, Content: "s"},
			{Role: User, Content: ""},
			{Role: Assistant, ToolCalls: []ToolCall{{"c1", "task", `{"a": oops`}, {"c2", "task", ""}, {"c3", "task", `{"a":1}`}}},
			{Role: Tool, ToolCallID: "c1", Content: "error: no JSON"},
		},
		Tools: []ToolSpec{{Name: "task", Description: "d", Parameters: json.RawMessage(`{"type":"object","x":[1,2]}`)}, {Name: "bare"}},
	}
	cold := float32(0)
	m := newModel(ModelConfig{Name: "a", Model: "m", MaxOutput: 7, Temperature: &cold}, Config{}, nil)
	raw, err := json.Marshal(m.build(req, 0))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":" "},` +
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"task","arguments":"{\"not_json\":\"{\\\"a\\\": oops\"}"}},` +
		`{"id":"c2","type":"function","function":{"name":"task","arguments":"{}"}},{"id":"c3","type":"function","function":{"name":"task","arguments":"{\"a\":1}"}}]},` +
		`{"role":"tool","content":"error: no JSON","tool_call_id":"c1"}],"max_tokens":7,"temperature":1e-45,"stream":true,` +
		`"tools":[{"function":{"name":"task","description":"d","parameters":{"type":"object","x":[1,2]}},"type":"function"},` +
		`{"function":{"name":"bare","parameters":{"type":"object","properties":{}}},"type":"function"}],"stream_options":{"include_usage":true}}`
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Error(d)
	}
	for _, msg := range withoutTools(req.Messages) {
		if msg.Role == Tool || len(msg.ToolCalls) > 0 || msg.Role != User && msg.Content == "" {
			t.Errorf("not plain: %+v", msg)
		}
	}
}
