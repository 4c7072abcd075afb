package session

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"reverie/internal/llm/calls/callstest"
)

// script is a model server that gives its answers in order and keeps the
// requests. An answer that starts with "{" is a tool call's arguments for
// append_memory, one like "task {" calls that tool; "500" is a server error, "too large" a refusal for that reason; one that starts with "cut" ends at the output limit.
type script struct {
	mu       sync.Mutex
	answers  []string
	forever  string // given when answers has run out
	refuse   string // a parameter that makes a request a bad one
	requests []string
	block    chan struct{}         // when set, an answer waits for it
	count    func(body string) int // when set, how many tokens a request has, and usage is reported

	reply func(body string) (answer string, ok bool) // goes before answers and forever, if it is ok
	tool  string                                     // called in the place of append_memory
	hold  func(body string) <-chan struct{}          // an answer waits for what it returns; nil = for nothing

	binds bool                                       // it can bind an answer to a schema; else it refuses such a request
	words func(body string) (callstest.Answer, bool) // goes before all of these, in the model's own words and in small pieces
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // who asked has gone in the middle of it
		return
	}
	if !s.binds && strings.Contains(string(body), `"response_format"`) {
		http.Error(w, `{"error":{"message":"Unsupported parameter: response_format"}}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, string(body))
	if s.words != nil {
		if a, ok := s.words(string(body)); ok {
			s.mu.Unlock()
			writeWords(w, a)
			return
		}
	}
	answer := s.forever
	if given, ok := s.given(string(body)); ok {
		answer = given
	} else if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	called, answer := toolCall(answer)
	if s.tool != "" && called == "append_memory" {
		called = s.tool
	}
	n, block := len(s.requests), (<-chan struct{})(s.block)
	s.mu.Unlock()
	if s.refuse != "" && strings.Contains(string(body), `"`+s.refuse+`"`) {
		http.Error(w, `{"error":{"message":"Unsupported parameter: `+s.refuse+`"}}`, http.StatusBadRequest)
		return
	}
	if s.hold != nil {
		block = s.hold(string(body))
	}
	if block != nil {
		select {
		case <-block:
		case <-r.Context().Done():
			return
		}
	}
	if answer == "500" {
		http.Error(w, `{"error":{"message":"upstream detail"}}`, http.StatusInternalServerError)
		return
	}
	if answer == "too large" {
		http.Error(w, `{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}`, http.StatusBadRequest)
		return
	}
	delta, finish := map[string]any{"role": "assistant", "content": answer}, "stop"
	if strings.HasPrefix(answer, "{") {
		delta, finish = map[string]any{"role": "assistant", "tool_calls": []any{calling(0, fmt.Sprint("call_", n), called, answer)}}, "tool_calls"
	}
	if strings.HasPrefix(answer, "cut") {
		finish = "length"
	}
	send := streaming(w)
	send(delta, nil)
	send(map[string]any{}, finish)
	if s.count != nil {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1}}\n\n", s.count(string(body)))
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (s *script) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// streaming returns what sends a piece of an answer.
func streaming(w http.ResponseWriter) func(delta map[string]any, finish any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(delta map[string]any, finish any) {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

// calling is a tool call in a piece of an answer.
func calling(index int, id, name, arguments string) any {
	return map[string]any{"index": index, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
}

// writeWords streams an answer as it stands, a few characters at a time.
func writeWords(w http.ResponseWriter, a callstest.Answer) {
	send := streaming(w)
	for r := []rune(a.Text); len(r) > 0; r = r[min(len(r), 5):] {
		send(map[string]any{"content": string(r[:min(len(r), 5)])}, nil)
	}
	for i, c := range a.Native {
		send(map[string]any{"tool_calls": []any{calling(i, fmt.Sprint("call_", i), c.Name, c.Arguments)}}, nil)
	}
	send(map[string]any{}, "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// toolCall takes the name of a tool from the front of its arguments.
func toolCall(answer string) (name, rest string) {
	if name, rest, ok := strings.Cut(answer, " {"); ok && regexp.MustCompile(`^[a-z_]+$`).MatchString(name) {
		return name, "{" + rest
	}
	return "append_memory", answer
}
