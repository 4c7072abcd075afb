package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
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

// Templates that bind where calls stand, or what their ids look like, get the same conversation
// in another form, and the same form each time.
func TestCallsForStrictTemplates(t *testing.T) {
	id := "0123456789abcdef0123456789abcdef" // as llama.cpp gives them
	call := func(id string) Message {
		return Message{Role: Assistant, ToolCalls: []ToolCall{{ID: id, Name: "task", Arguments: "{}"}}}
	}
	done := Message{Role: Tool, ToolCallID: id, Content: "done"}
	user := func(s string) Message { return Message{Role: User, Content: s} }
	alternate := `Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...`
	short := shortID(id)
	for _, tt := range []struct {
		name     string
		messages []Message
		refusals []string
		want     string
	}{
		{"ids, a template's words", []Message{user("one"), call(id), done},
			[]string{"Jinja Exception: Tool call IDs should be alphanumeric strings with length 9!"},
			"u:one a:(" + short + ") t:done(" + short + ") "},
		{"ids, a server's words", []Message{user("one"), call(id), done},
			[]string{"Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."},
			"u:one a:(" + short + ") t:done(" + short + ") "},
		{"a turn that failed after its call", []Message{user("one"), call(id), done, user("two")}, []string{alternate},
			"u:one a:(" + id + ") t:done(" + id + ") a:  u:two "},
		{"no place for results", []Message{user("one"), call(id), done}, []string{alternate, alternate},
			"u:one a:[Called the tool task with {}] u:[Result of the tool task]\ndone "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var steps []http.HandlerFunc
			for _, r := range tt.refusals {
				steps = append(steps, status(400, fmt.Sprintf(`{"error":{"message":%q}}`, r)))
			}
			s := script(t, append(steps, answers("fine"))...)
			m := setup(t, &waits{}, nil, s.URL)
			for range 2 {
				ask(t, m, Request{Messages: tt.messages})
			}
			var last []string
			for i := len(tt.refusals); i < s.requests(); i++ {
				last = append(last, inShort(s.body(i)["messages"].([]any)))
			}
			if d := cmp.Diff([]string{tt.want, tt.want}, last); d != "" {
				t.Error(d)
			}
			if tt.messages[1].ToolCalls[0].ID != id {
				t.Error("the request itself was changed")
			}
		})
	}
	if len(short) != 9 || shortID("abcDEF123") != "abcDEF123" || shortID(id+"0") == short {
		t.Errorf("short ids: %q, %q", short, shortID("abcDEF123"))
	}
}

// inShort writes down messages with the ids of their calls.
func inShort(messages []any) (said string) {
	for _, raw := range messages {
		m := raw.(map[string]any)
		content, _ := m["content"].(string)
		said += m["role"].(string)[:1] + ":" + content
		if calls, ok := m["tool_calls"].([]any); ok {
			said += "(" + calls[0].(map[string]any)["id"].(string) + ")"
		}
		if id, ok := m["tool_call_id"].(string); ok {
			said += "(" + id + ")"
		}
		said += " "
	}
	return said
}
