package llm

import (
	"encoding/json"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// maxMarks is how many cache marks Anthropic allows in one request. The tools
// need none: for the cache they come before the first message, so that every
// mark has them in it.
const maxMarks = 4

// marks says which messages carry a cache mark, in order: the first of those
// asked for, because it ends the prefix that all conversations share, and the
// last ones. What has no text, and a tool's result where the server takes no
// mark on it, leaves its mark to the message before it.
func (m *model) marks(req Request, messages []Message, q quirk) []int {
	if !m.CacheMarks || q&(noMarks|alternating) != 0 {
		return nil
	}
	var at []int
	for _, i := range req.Marks {
		if i >= len(messages) {
			continue
		}
		for i >= 0 && (strings.TrimSpace(messages[i].Content) == "" || messages[i].Role == Tool && q&noToolMarks != 0) {
			i--
		}
		if i >= 0 {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	if len(at) > maxMarks {
		at = append(at[:1], at[len(at)-maxMarks+1:]...)
	}
	return at
}

// markedMessage is a message whose text is a part of its own, which is where the
// mark stands. go-openai has no place for one.
type markedMessage struct {
	Role       string            `json:"role"`
	Content    []any             `json:"content"`
	ToolCalls  []openai.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
}

type markedText struct {
	Type  string            `json:"type"`
	Text  string            `json:"text"`
	Cache map[string]string `json:"cache_control"`
}

// marked is the body of the request with cache marks after the messages at; nil
// when there are none.
func marked(r openai.ChatCompletionRequest, at []int) ([]byte, error) {
	if len(at) == 0 {
		return nil, nil
	}
	messages := make([]any, len(r.Messages))
	for i, msg := range r.Messages {
		if !slices.Contains(at, i) {
			messages[i] = msg
			continue
		}
		content := []any{markedText{"text", msg.Content, map[string]string{"type": "ephemeral"}}}
		for j, p := range msg.MultiContent { // its text and then its pictures: the mark stands where the text does
			if j == 0 {
				content[0] = markedText{"text", p.Text, map[string]string{"type": "ephemeral"}}
			} else {
				content = append(content, p)
			}
		}
		messages[i] = markedMessage{Role: msg.Role, Content: content, ToolCalls: msg.ToolCalls, ToolCallID: msg.ToolCallID}
	}
	return json.Marshal(struct {
		openai.ChatCompletionRequest
		Messages []any `json:"messages"` // in place of the one within
	}{r, messages})
}
