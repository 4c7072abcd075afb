package llm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"reverie/internal/lazyregexp"
)

// quirk is a part of the protocol that a server or model does not understand. Once learned,
// requests leave it out.
type quirk uint16

const (
	noStreamOptions quirk = 1 << iota // no token counts in streams
	noTools                           // the model cannot call tools
	newMaxTokens                      // it expects max_completion_tokens
	thinksFirst                       // sends </think> without <think>
	alternating                       // its template accepts no two user messages in a row
	noFormat                          // its server has no structured output
	shortIDs                          // its template accepts only call ids of nine letters and digits
	plainTools                        // its template has no place for calls and results

	// The dispensable parts of a request. They are left out in this order when a server refuses
	// without a known reason.
	noMarks        // cache marks
	noTemplateArgs // arguments for the chat template
	noThinkOff     // turning thinking off
	noThink        // thinking levels
	noTemperature  // a temperature
	noPictures     // pictures
)

const (
	thinkQuirks = noThinkOff | noThink
	dispensable = noMarks | noTemplateArgs | thinkQuirks | noTemperature | noPictures
)

var quirkNames = map[quirk]string{
	noStreamOptions: "does not know stream_options: it reports no token counts",
	noTools:         "does not support tools: it can answer, but not remember or act. Choose a model with tool support",
	newMaxTokens:    "expects max_completion_tokens",
	noTemperature:   "accepts no temperature",
	thinksFirst:     "sends its thinking without an opening tag",
	alternating:     "accepts no two user messages in a row: they are merged",
	shortIDs:        "accepts only tool call ids of nine letters and digits: others are replaced",
	plainTools:      "has no tool calls in its template: past ones are sent as text",
	noFormat:        "has no structured output: a tool itself reports arguments that do not fit",
	noMarks:         "accepts no cache marks: turn llm.models cache_marks off for it",
	noTemplateArgs:  "accepts no arguments for its chat template",
	noThinkOff:      "cannot turn thinking off: it is asked to think little",
	noThink:         "accepts no thinking level: it is told in words",
	noPictures:      "accepts no images: set llm.models vision to false for it, or start it with its vision part (llama.cpp: --mmproj)",
}

// buildRequest returns the request for one model, without the parts in q.
func (m *model) buildRequest(req Request, q quirk) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{Model: m.Model, Stream: true,
		ReasoningEffort: effort(req.Think, q), ChatTemplateKwargs: templateArgs(req.Think, q)}
	if q&noStreamOptions == 0 {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if q&newMaxTokens == 0 {
		//lint:ignore SA1019 the old name is the only one that local servers know
		r.MaxTokens = m.maxOutput()
	} else {
		r.MaxCompletionTokens = m.maxOutput()
	}
	if t := m.temperature(req, q); t != nil {
		// A plain 0 would be omitted from the JSON and mean the server's default.
		r.Temperature = max(*t, math.SmallestNonzeroFloat32)
	}
	if q&noTools == 0 && !req.NoCalls {
		for _, t := range req.Tools {
			r.Tools = append(r.Tools, toolOf(t))
		}
	}
	for _, msg := range m.messages(req, q) {
		r.Messages = append(r.Messages, messageOf(msg))
	}
	if req.answerSchema != nil {
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: req.answerSchema.Name, Schema: req.answerSchema.Parameters}}
		if len(r.Tools) > 0 { // the tools stay, for the server's cache
			r.ToolChoice = "none"
		}
	}
	return r
}

// temperature returns the model's configured temperature, else the request's; nil = leave it out.
// Models differ in what they tolerate.
func (m *model) temperature(req Request, q quirk) *float32 {
	switch {
	case q&noTemperature != 0:
		return nil
	case m.Temperature != nil:
		return m.Temperature
	}
	return req.Temperature
}

// messages converts the request's messages to a form that the model understands. It converts them
// one for one unless they must alternate.
func (m *model) messages(req Request, q quirk) []Message {
	messages := req.Messages
	if q&noPictures != 0 {
		messages = describePictures(messages)
	}
	if q&(noTools|plainTools) != 0 {
		messages = withoutTools(messages)
	}
	if q&shortIDs != 0 {
		messages = withShortIDs(messages)
	}
	if q&alternating != 0 {
		messages = alternate(messages)
	}
	return messages
}

// alternate merges consecutive user messages. Between a tool's result and a user message it inserts
// an empty answer, which a failed turn lacks.
func alternate(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		switch n := len(out); {
		case n > 0 && m.Role == User && out[n-1].Role == User:
			out[n-1].Content += "\n\n" + m.Content
			out[n-1].Pictures = append(out[n-1].Pictures[:len(out[n-1].Pictures):len(out[n-1].Pictures)], m.Pictures...)
			continue
		case n > 0 && m.Role == User && out[n-1].Role == Tool:
			out = append(out, Message{Role: Assistant})
		}
		out = append(out, m)
	}
	return out
}

// withShortIDs rewrites call ids for Mistral's templates. The mapping is deterministic, so that the
// server's cache stays valid.
func withShortIDs(messages []Message) []Message {
	out := slices.Clone(messages)
	for i, m := range out {
		out[i].ToolCalls = slices.Clone(m.ToolCalls)
		for j, c := range m.ToolCalls {
			out[i].ToolCalls[j].ID = shortID(c.ID)
		}
		if m.Role == Tool {
			out[i].ToolCallID = shortID(m.ToolCallID)
		}
	}
	return out
}

var nineLetters = lazyregexp.New(`^[a-zA-Z0-9]{9}$`)

func shortID(id string) string {
	if nineLetters().MatchString(id) {
		return id
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(id)))[:9]
}

func toolOf(t ToolSpec) openai.Tool {
	params := t.Parameters
	if len(params) == 0 {
		params = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name: t.Name, Description: t.Description, Parameters: params,
	}}
}

func messageOf(msg Message) openai.ChatCompletionMessage {
	out := openai.ChatCompletionMessage{Role: string(msg.Role), Content: msg.Content, ToolCallID: msg.ToolCallID}
	for _, c := range msg.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: c.Name, Arguments: asObject(c.Arguments)}})
	}
	if len(msg.Pictures) > 0 {
		out.Content, out.MultiContent = "", contentParts(msg)
		return out
	}
	if out.Content == "" && len(out.ToolCalls) == 0 {
		out.Content = " " // an omitted content is invalid on many servers
	}
	return out
}

// asObject makes a past call's arguments valid to send. Servers with chat templates (Ollama,
// llama.cpp) refuse the whole conversation if they are not a JSON object.
func asObject(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return arguments
	}
	text, _ := json.Marshal(map[string]string{"not_json": arguments}) //nolint:errchkjson // a string
	return string(text)
}

// withoutTools rewrites past tool calls and results as plain text, for models that support neither.
func withoutTools(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	names := map[string]string{} // call id → tool
	for _, m := range messages {
		switch {
		case m.Role == Tool:
			m = Message{Role: User, Content: fmt.Sprintf("[Result of the tool %s]\n%s", names[m.ToolCallID], m.Content)}
		case len(m.ToolCalls) > 0:
			text := m.Content
			for _, c := range m.ToolCalls {
				names[c.ID] = c.Name
				text += fmt.Sprintf("\n[Called the tool %s with %s]", c.Name, c.Arguments)
			}
			m = Message{Role: Assistant, Content: strings.TrimPrefix(text, "\n")}
		}
		out = append(out, m)
	}
	return out
}

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
