package llm

import (
	"encoding/json"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// marks says which messages carry a cache mark, in order. What has no text leaves its mark
// to the message before it, and so does a tool's result, on which some servers take none.
// The tools need none: for the cache they come before the first message, so that every mark
// has them in it.
func (m *model) marks(req Request, messages []Message, q quirk) (at []int) {
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

// marked is the body of the request, with cache marks after the messages at. go-openai has no
// place for them.
func marked(r openai.ChatCompletionRequest, at []int) ([]byte, error) {
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
