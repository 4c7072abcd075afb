package llm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/test/expect"
)

// A template that accepts no two user messages in a row gets them merged after the first refusal,
// whatever the server's status. Other models get them unchanged.
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
		expect.Equal(t, req.Messages[1].Content, "one", "the request itself was changed")
	}
}

// Leaving parts out uses up no tries.
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
	raw := expect.Must(json.Marshal(m.buildRequest(req, 0)))(t)
	const want = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":" "},` +
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"task","arguments":"{\"not_json\":\"{\\\"a\\\": oops\"}"}},` +
		`{"id":"c2","type":"function","function":{"name":"task","arguments":"{}"}},{"id":"c3","type":"function","function":{"name":"task","arguments":"{\"a\":1}"}}]},` +
		`{"role":"tool","content":"error: no JSON","tool_call_id":"c1"}],"max_tokens":7,"temperature":1e-45,"stream":true,` +
		`"tools":[{"function":{"name":"task","description":"d","parameters":{"type":"object","x":[1,2]}},"type":"function"},` +
		`{"function":{"name":"bare","parameters":{"type":"object","properties":{}}},"type":"function"}],"stream_options":{"include_usage":true}}`
	expect.NoDiff(t, string(raw), want, "")
	for _, msg := range withoutTools(req.Messages) {
		if msg.Role == Tool || len(msg.ToolCalls) > 0 || msg.Role != User && msg.Content == "" {
			t.Errorf("not plain: %+v", msg)
		}
	}
}

// Strict templates get the same conversation in another form, the same each time.
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
			expect.NoDiff(t, last, []string{tt.want, tt.want}, "")
			expect.Equal(t, tt.messages[1].ToolCalls[0].ID, id, "the request itself was changed")
		})
	}
	if len(short) != 9 || shortID("abcDEF123") != "abcDEF123" || shortID(id+"0") == short {
		t.Errorf("short ids: %q, %q", short, shortID("abcDEF123"))
	}
}

// inShort formats messages with the ids of their calls.
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

func TestParseThink(t *testing.T) {
	for in, want := range map[string]Think{"": thinkDefault, "default": thinkDefault, " Off\n": ThinkOff, "low": thinkLow, "MEDIUM": thinkMedium, "high": thinkHigh} {
		if got, err := ParseThink(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	_, err := ParseThink("hard")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"hard"`, "off", "low", "medium", "high", "default"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in: %v", want, err)
		}
	}
}

// thinking returns the thinking parameters of a request.
func thinking(body map[string]any) string {
	var said []string
	if e, ok := body["reasoning_effort"].(string); ok {
		said = append(said, e)
	}
	if a, ok := body["chat_template_kwargs"].(map[string]any); ok && maps.Equal(a, map[string]any{"enable_thinking": false}) {
		said = append(said, "template")
	}
	if len(said) == 0 && (body["reasoning_effort"] != nil || body["chat_template_kwargs"] != nil) {
		return "something else"
	}
	return strings.Join(said, "+")
}

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

// wire returns the body of the request on the network.
func wire(t *testing.T, c ModelConfig, req Request) string {
	t.Helper()
	s := script(t, answers("fine"))
	c.Name, c.Model, c.BaseURL = "a", "m", s.URL
	ask(t, New(Config{Models: []ModelConfig{c}}), req)
	return s.raw[0]
}

// Marks do not change requests to models without CacheMarks.
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
		expect.NoDiff(t, got, want, "%s", name)
	}
}

// A mark changes its own message only; the others stay the same, byte for byte.
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
		{"as asked", long, []int{0, 5}, 0, []int{0, 5}},
		{"learned", long, []int{1}, noMarks, nil},
		{"empty texts leave it to the one before", loop.Messages, []int{0, 2}, 0, []int{0, 1}},
		{"not on a result", loop.Messages, []int{0, 3}, 0, []int{0, 1}},
		{"nothing to stand on", []Message{{Role: User, Content: " "}}, []int{0}, 0, nil},
	}
	for _, tt := range tests {
		m := newModel(ModelConfig{CacheMarks: true}, Config{}, nil)
		expect.NoDiff(t, m.cacheMarks(Request{Marks: tt.marks}, tt.messages, tt.quirk), tt.want, "%s", tt.name)
	}
}

// markedIn lists the messages with a mark.
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
			expect.Equal(t, ask(t, setup(t, &waits{}, nil, s.URL), hello).Usage, tt.want)
		})
	}
}

func TestEstimateTokens(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"a", 1},
		{strings.Repeat("a", 100), 21},
		{strings.Repeat(" ", 100), 21},
		{strings.Repeat("A", 100), 35},
		{strings.Repeat("7", 100), 45},
		{strings.Repeat("{", 100), 55},
		{strings.Repeat("ж", 100), 30},
		{strings.Repeat("猫", 100), 75},
		{strings.Repeat("\xff", 100), 75},
	}
	for _, tt := range tests {
		expect.Equal(t, EstimateTokens(tt.in), tt.want, "%.10q…", tt.in)
	}
	sum := 0
	expect.Equal(t, testing.AllocsPerRun(10, func() { sum += EstimateTokens("héllo wörld 猫") }), 0, "allocations")
}
