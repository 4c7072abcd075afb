package llm

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
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
			m := configured(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Retry: Retry{Sleep: w.sleep},
				Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "m", Temperature: &warm}}})
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

// A template that takes no two messages of a person in a row gets them as one, from the
// first refusal on, whatever the server's status; others get them as they were said.
func TestRolesAlternate(t *testing.T) {
	refusal := `{"error":{"message":"Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."}}`
	for _, code := range []int{400, 500} {
		s := script(t, status(code, refusal), answers("fine"))
		w := &waits{}
		m := setup(t, w, nil, s.URL)
		req := Request{Messages: []Message{{Role: System, Content: "s"}, {Role: User, Content: "one"}, {Role: User, Content: "two"},
			{Role: Assistant, Content: "a"}, {Role: User, Content: "three"}}}
		for range 2 {
			ask(t, m, req)
		}
		var sent []string
		for i := range s.requests() {
			said := ""
			for _, msg := range s.body(i)["messages"].([]any) {
				said += msg.(map[string]any)["role"].(string)[:1] + ":" + msg.(map[string]any)["content"].(string) + " "
			}
			sent = append(sent, said)
		}
		merged := "s:s u:one\n\ntwo a:a u:three "
		if d := cmp.Diff([]string{"s:s u:one u:two a:a u:three ", merged, merged}, sent); d != "" || len(w.ds) != 0 {
			t.Errorf("with status %d: %s", code, d)
		}
		if req.Messages[1].Content != "one" {
			t.Error("the request itself was changed")
		}
	}
}

// A temperature is sent unless the configuration names one, which goes before it; a
// server that refuses it, in whatever words, answers without, and is not told again.
func TestTemperatureOfTheRequest(t *testing.T) {
	cold, own, none := float32(0), float32(0.5), (*float32)(nil)
	refuse := func(text string) http.HandlerFunc { return status(400, `{"error":{"message":"`+text+`"}}`) }
	for _, tt := range []struct {
		name             string
		configured, said *float32
		steps            []http.HandlerFunc
		want             []any // of the requests; then one more of them
		learned          bool
	}{
		{"said", none, &own, nil, []any{0.5}, false},
		{"zero", none, &cold, nil, []any{1e-45}, false},
		{"configured", &cold, &own, nil, []any{1e-45}, false},
		{"neither", none, none, nil, []any{nil}, false},
		{"refused", none, &own, []http.HandlerFunc{refuse("invalid temperature: only 1 is allowed for this model")}, []any{0.5, nil}, true},
		{"refused, vaguely", none, &own, []http.HandlerFunc{refuse("bad request")}, []any{0.5, nil}, true},
		{"configured and refused", &own, &cold, []http.HandlerFunc{refuse("Unknown parameter: temperature")}, []any{0.5, nil}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := script(t, append(tt.steps, answers("fine"))...)
			m := configured(t, Config{Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "m", Temperature: tt.configured}}, Retry: Retry{Attempts: 1}})
			req := hello
			req.Temperature = tt.said
			ask(t, m, req)
			ask(t, m, req)
			var got []any
			for i := range s.requests() {
				got = append(got, s.body(i)["temperature"])
			}
			if d := cmp.Diff(append(tt.want, tt.want[len(tt.want)-1]), got); d != "" {
				t.Error(d)
			}
			if (m.models[0].known() == noTemperature) != tt.learned {
				t.Errorf("learned %b", m.models[0].known())
			}
		})
	}
}

// A server that complains of a temperature it was not sent is not asked the same again.
func TestTemperatureThatWasNotSent(t *testing.T) {
	s := script(t, status(400, `{"error":{"message":"temperature is not supported"}}`), answers("fine"))
	m := setup(t, &waits{}, nil, s.URL)
	if _, err := m.Complete(t.Context(), "chat", hello, nil); err == nil || s.requests() != 1 || m.models[0].known() != 0 {
		t.Errorf("%v after %d requests, learned %b", err, s.requests(), m.models[0].known())
	}
}

// What a server refuses without a reason is first sought elsewhere: the temperature is
// the last to go, and only what was at fault is remembered.
func TestVagueRefusalOfTheTemperature(t *testing.T) {
	vague := status(400, `{"error":{"message":"bad request"}}`)
	s, warm := script(t, vague, vague, answers("fine")), float32(0.5)
	m := setup(t, &waits{}, nil, s.URL)
	req := hello
	req.Think, req.Temperature = ThinkHigh, &warm
	ask(t, m, req)
	ask(t, m, req)
	if b := s.body(3); thinking(b) != "high" || b["temperature"] != nil || thinking(s.body(1)) != "" || s.body(1)["temperature"] == nil {
		t.Errorf("requests %v, %v", s.body(1), b)
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
	m := configured(t, Config{Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: "gpt-5-mini", Temperature: &warm}}})
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
