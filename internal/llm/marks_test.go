package llm

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loop is a conversation in the middle of its tool calls.
var loop = Request{
	Messages: []Message{
		{Role: System, Content: "s <b>"},
		{Role: User, Content: "u"},
		{Role: Assistant, ToolCalls: []ToolCall{{"c1", "task", "{}"}}},
		{Role: Tool, ToolCallID: "c1", Content: "done"},
	},
	Tools: []ToolSpec{{Name: "task"}},
}

// wire returns the body of the request as it goes over the network.
func wire(t *testing.T, c ModelConfig, req Request) string {
	t.Helper()
	s := script(t, answers("fine"))
	c.Name, c.Model, c.BaseURL = "a", "m", s.URL
	ask(t, configured(t, Config{Models: []ModelConfig{c}}), req)
	return s.raw[0]
}

// Who is not configured for marks gets the same bytes whether there are any.
func TestNoMarksNoChange(t *testing.T) {
	const want = `{"model":"m","messages":[{"role":"system","content":"s \u003cb\u003e"},{"role":"user","content":"u"},` +
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"task","arguments":"{}"}}]},` +
		`{"role":"tool","content":"done","tool_call_id":"c1"}],"max_tokens":2048,"stream":true,` +
		`"tools":[{"function":{"name":"task","parameters":{"type":"object","properties":{}}},"type":"function"}],"stream_options":{"include_usage":true}}`
	marked := loop
	marked.Marks = []int{0, 1, 3}
	for name, got := range map[string]string{
		"plain":                  wire(t, ModelConfig{}, loop),
		"marks, not configured":  wire(t, ModelConfig{}, marked),
		"configured, none asked": wire(t, ModelConfig{CacheMarks: true}, loop),
	} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A mark adds itself and nothing else, and every message without one is as it
// was, byte for byte.
func TestMarksOnTheWire(t *testing.T) {
	req := loop
	req.Marks = []int{0}
	plain, got := wire(t, ModelConfig{}, req), wire(t, ModelConfig{CacheMarks: true}, req)
	for _, want := range []string{
		`{"content":[{"cache_control":{"type":"ephemeral"},"text":"s \u003cb\u003e","type":"text"}],"role":"system"}`,
		`{"role":"user","content":"u"},{"role":"assistant","tool_calls":[`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing: %s\nin: %s", want, got)
		}
	}
	var a, b map[string]any
	if json.Unmarshal([]byte(plain), &a) != nil || json.Unmarshal([]byte(got), &b) != nil {
		t.Fatal("no JSON")
	}
	delete(a, "messages")
	delete(b, "messages")
	if !reflect.DeepEqual(a, b) {
		t.Errorf("besides messages: %v\nand: %v", a, b)
	}
}

func TestMarkPlaces(t *testing.T) {
	long := []Message{{Role: System, Content: "s"}}
	for range 9 {
		long = append(long, Message{Role: User, Content: "u"})
	}
	tests := []struct {
		name     string
		messages []Message
		marks    []int
		quirk    quirk
		want     []int
	}{
		{"as asked, sorted, once", long, []int{5, 0, 5}, 0, []int{0, 5}},
		{"the first and the last ones", long, []int{1, 2, 3, 4, 5, 6}, 0, []int{1, 4, 5, 6}},
		{"not there", long, []int{-1, 10, 99}, 0, nil},
		{"learned", long, []int{1}, noMarks, nil},
		{"empty texts leave it to the one before", loop.Messages, []int{0, 2}, 0, []int{0, 1}},
		{"not on a result", loop.Messages, []int{0, 3}, 0, []int{0, 1}},
		{"nothing to stand on", []Message{{Role: User, Content: " "}}, []int{0}, 0, nil},
	}
	for _, tt := range tests {
		m := newModel(ModelConfig{CacheMarks: true}, Config{}, nil)
		if d := cmp.Diff(tt.want, m.marks(Request{Marks: tt.marks}, tt.messages, tt.quirk)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// markedIn lists the messages that carry a mark.
func markedIn(body map[string]any) (at []int) {
	for i, m := range body["messages"].([]any) {
		if _, ok := m.(map[string]any)["content"].([]any); ok {
			at = append(at, i)
		}
	}
	return at
}

func TestCachedTokens(t *testing.T) {
	tests := []struct {
		name, last string
		want       Usage
	}{
		{"OpenAI, vLLM", `"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}`, Usage{12, 8, 3}},
		{"DeepSeek", `"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":4}`, Usage{12, 8, 3}},
		{"Anthropic passed on", `"usage":{"prompt_tokens":12,"completion_tokens":3,"cache_read_input_tokens":8,"cache_creation_input_tokens":4}`, Usage{12, 8, 3}},
		{"Moonshot", `"usage":{"prompt_tokens":12,"completion_tokens":3,"cached_tokens":8}`, Usage{12, 8, 3}},
		{"null", `"usage":{"prompt_tokens":12,"completion_tokens":3,"cached_tokens":null,"prompt_tokens_details":null}`, Usage{12, 0, 3}},
		{"llama.cpp", `"usage":{"prompt_tokens":12,"completion_tokens":3},"timings":{"cache_n":8,"prompt_n":4,"predicted_n":3,"prompt_ms":1.5}`, Usage{12, 8, 3}},
		{"llama.cpp without usage", `"timings":{"cache_n":8,"prompt_n":4,"predicted_n":3}`, Usage{12, 8, 3}},
		{"llama.cpp without cache", `"timings":{"cache_n":-1,"prompt_n":12,"predicted_n":3}`, Usage{12, 0, 3}},
		{"other timings", `"usage":{"prompt_tokens":12,"completion_tokens":3},"timings":[0.5]`, Usage{12, 0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := script(t, events(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`, `{"choices":[],`+tt.last+`}`, "[DONE]"))
			if got := ask(t, setup(t, &waits{}, nil, s.URL), hello).Usage; got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
