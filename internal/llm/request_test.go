package llm

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

// Leaving something out is no failed try: all of them are left for errors.
func TestRefusalsAreNoTries(t *testing.T) {
	s := script(t, status(400, `{"error":"no stream_options"}`), status(500, ""), status(500, ""), answers("fine"))
	if got := ask(t, setup(t, &waits{}, nil, s.URL), hello); got.Text != "fine" {
		t.Errorf("%+v", got)
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
