package llm

import (
	"encoding/json"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// cacheMarks returns the messages that carry a cache mark, in order. A message without text and a tool's
// result pass their mark to the message before, because some servers accept none there. Tools come
// before the first message, so every mark covers them.
func (m *model) cacheMarks(req Request, messages []Message, q quirk) (at []int) {
	if !m.CacheMarks || q&(noMarks|alternating) != 0 {
		return nil
	}
	for _, i := range req.Marks {
		for i >= 0 && (strings.TrimSpace(messages[i].Content) == "" || messages[i].Role == Tool) {
			i--
		}
		if i >= 0 {
			at = append(at, i)
		}
	}
	return slices.Compact(at)
}

// encodeWithMarks encodes the request with cache marks on the messages at. go-openai has no field for them.
func encodeWithMarks(r openai.ChatCompletionRequest, at []int) ([]byte, error) {
	if len(at) == 0 {
		return json.Marshal(r)
	}
	messages := make([]any, len(r.Messages))
	for i, msg := range r.Messages {
		messages[i] = msg
	}
	for _, i := range at {
		raw, err := json.Marshal(r.Messages[i])
		if err != nil {
			return nil, err
		}
		var msg map[string]any
		if err := json.Unmarshal(raw, &msg); err != nil {
			return nil, err
		}
		content, ok := msg["content"].([]any) // a text and pictures, or else a text alone
		if !ok {
			content = []any{map[string]any{"type": "text", "text": msg["content"]}}
		}
		text, _ := content[0].(map[string]any)
		text["cache_control"] = map[string]string{"type": "ephemeral"}
		msg["content"], messages[i] = content, msg
	}
	return json.Marshal(struct {
		openai.ChatCompletionRequest
		Messages []any `json:"messages"` // in place of the one within
	}{r, messages})
}
