package llm

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
