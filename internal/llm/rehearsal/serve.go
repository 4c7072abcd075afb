package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"reverie/internal/llm"
)

// maxRequest is the largest accepted request, in bytes.
const maxRequest = 16 << 20

// request is a client's request, with the fields used here.
type request struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Tools         []tool    `json:"tools"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
}

// tool is an offered tool.
type tool struct {
	name   string
	tokens int // of its whole description
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *tool) UnmarshalJSON(b []byte) error {
	var o struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	*t = tool{o.Function.Name, llm.EstimateTokens(string(b))}
	return nil
}

type message struct {
	Role       string          `json:"role"`
	Raw        json.RawMessage `json:"content"`
	ToolCalls  []call          `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`

	text     string // of the content: a string or a list of parts
	pictures []picture
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *message) UnmarshalJSON(b []byte) error {
	type plain message // without this method
	if err := json.Unmarshal(b, (*plain)(m)); err != nil || len(m.Raw) == 0 {
		return err
	}
	if m.Raw[0] != '[' {
		return json.Unmarshal(m.Raw, &m.text)
	}
	var err error
	m.text, m.pictures, err = parts(m.Raw)
	return err
}

type call struct {
	Index    *int     `json:"index,omitempty"` // in streams only
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// reply is what a rule answers.
type reply struct {
	text   string
	calls  []call
	finish string // "" = as usual

	delay  time.Duration // before the first word
	status int           // an HTTP error in place of an answer; 0 = none
}

type server struct{ cfg Config }

func (s server) models(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": ModelName, "object": "model", "created": 0, "owned_by": "reverie"}},
	})
}

func (s server) chat(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		fail(w, http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("Request too large: more than %d MiB", maxRequest>>20))
		return
	}
	if err != nil {
		return // the client disconnected
	}
	var req request
	if err := json.Unmarshal(raw, &req); err != nil {
		fail(w, http.StatusBadRequest, "invalid_json", "We could not parse the JSON body of your request: "+err.Error())
		return
	}
	switch {
	case req.Model != ModelName:
		fail(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("The model %q does not exist; this server has %q.", req.Model, ModelName))
		return
	case len(req.Messages) == 0:
		fail(w, http.StatusBadRequest, "empty_array", "Invalid 'messages': empty array.")
		return
	}
	a := req.truncate(answer(req))
	s.cfg.Log.Debug("rehearsal model answers", "messages", len(req.Messages), "words", len(strings.Fields(a.text)), "calls", len(a.calls))
	if !pause(r, a.delay) {
		return
	}
	switch {
	case a.status != 0:
		if a.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		fail(w, a.status, "rehearsed", fmt.Sprintf("A rehearsed error: %d %s", a.status, http.StatusText(a.status)))
	case req.Stream:
		s.stream(w, r, req, a)
	default:
		writeWhole(w, req, a)
	}
}

// truncate truncates the answer at the client's token limit.
func (req request) truncate(a reply) reply {
	limit := max(req.MaxTokens, req.MaxCompletionTokens)
	if limit > 0 && llm.EstimateTokens(a.text) > limit {
		kept := ""
		for _, word := range splitWords(a.text) {
			if llm.EstimateTokens(kept+word) > limit {
				break
			}
			kept += word
		}
		a.text, a.finish = kept, "length"
	}
	if a.finish == "" {
		a.finish = "stop"
		if len(a.calls) > 0 {
			a.finish = "tool_calls"
		}
	}
	for i := range a.calls {
		a.calls[i].Type = "function"
		if a.calls[i].ID == "" { // derived from its position: deterministic
			a.calls[i].ID = "call_" + strconv.Itoa(len(req.Messages)) + "_" + strconv.Itoa(i)
		}
	}
	return a
}

func (req request) usage(a reply) map[string]any {
	in, out := 0, llm.EstimateTokens(a.text)
	for _, m := range req.Messages {
		in += llm.EstimateTokens(m.text)
		for _, c := range m.ToolCalls {
			in += llm.EstimateTokens(c.Function.Name + c.Function.Arguments)
		}
	}
	for _, t := range req.Tools {
		in += t.tokens
	}
	for _, c := range a.calls {
		out += llm.EstimateTokens(c.Function.Name + c.Function.Arguments)
	}
	return map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

func writeWhole(w http.ResponseWriter, req request, a reply) {
	m := map[string]any{"role": "assistant", "content": a.text}
	if len(a.calls) > 0 {
		m["tool_calls"] = a.calls
	}
	send(w, http.StatusOK, map[string]any{
		"id": "chatcmpl-rehearsal", "object": "chat.completion", "created": 0, "model": ModelName,
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": a.finish}},
		"usage":   req.usage(a),
	})
}

// stream sends the answer as events: one word each, and tool calls in fragments.
func (s server) stream(w http.ResponseWriter, r *http.Request, req request, a reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(choices []any, usage any) {
		chunk := map[string]any{"id": "chatcmpl-rehearsal", "object": "chat.completion.chunk", "created": 0, "model": ModelName, "choices": choices}
		if req.StreamOptions.IncludeUsage {
			chunk["usage"] = usage
		}
		fmt.Fprintf(w, "data: %s\n\n", asJSON(chunk))
		http.NewResponseController(w).Flush()
	}
	delta := func(d any, finish any) {
		event([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for i, p := range splitWords(a.text) {
		if i > 0 && !pause(r, s.cfg.Pace) {
			return
		}
		delta(map[string]any{"content": p}, nil)
	}
	for i, c := range a.calls {
		half := len(c.Function.Arguments) / 2
		first, rest := c, call{Index: &i}
		first.Index, first.Function.Arguments = &i, c.Function.Arguments[:half]
		rest.Function.Arguments = c.Function.Arguments[half:]
		delta(map[string]any{"tool_calls": []call{first}}, nil)
		delta(map[string]any{"tool_calls": []call{rest}}, nil)
	}
	delta(struct{}{}, a.finish)
	if req.StreamOptions.IncludeUsage {
		event([]any{}, req.usage(a))
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// splitWords splits a text after each run of white space, losslessly.
func splitWords(s string) (out []string) {
	for s != "" {
		i := strings.IndexAny(s, " \n")
		for i >= 0 && i < len(s) && (s[i] == ' ' || s[i] == '\n') {
			i++
		}
		if i < 0 {
			i = len(s)
		}
		out = append(out, s[:i])
		s = s[i:]
	}
	return out
}

// pause sleeps, and returns false if the client disconnected.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return r.Context().Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-t.C:
		return true
	}
}

func fail(w http.ResponseWriter, status int, code, text string) {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	send(w, status, map[string]any{"error": map[string]any{"message": text, "type": kind, "param": nil, "code": code}})
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(asJSON(v), '\n'))
}

// asJSON encodes v. Keys are sorted, so equal requests have equal bytes.
func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return b
}
