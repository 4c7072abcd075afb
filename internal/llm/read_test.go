package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"reverie/internal/test/expect"
)

// remember offers one tool whose arguments are valid if they have an entry.
func remember(said string) Request {
	return Request{
		Messages: []Message{{Role: User, Content: said}},
		Tools: []ToolSpec{{Name: "append_memory",
			Parameters: json.RawMessage(`{"type":"object","properties":{"entry":{"type":"string"}},"required":["entry"]}`)}},
		Fit: func(c ToolCall) (ToolCall, error) {
			if !strings.Contains(c.Arguments, `"entry"`) {
				return c, errors.New("entry: is missing")
			}
			return c, nil
		},
	}
}

// TestCallInText: a call streamed as text becomes a call of the reply and is never shown.
func TestCallInText(t *testing.T) {
	s := script(t, answers("I will.", "\n<to", "ol_call>{\"name\": \"append_mem", "ory\", \"arguments\": {\"entry\"", ": \"tea\"}",
		"}</tool", "_call>"))
	var seen []string
	m := setup(t, &waits{}, nil, s.URL)
	got, err := m.Complete(t.Context(), "chat", remember("Remember tea."), func(text string) { seen = append(seen, text) })
	if err != nil || got.Text != "I will." || len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != `{"entry": "tea"}` ||
		got.ToolCalls[0].ID == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	expect.NoDiff(t, seen, []string{"I will."}, "shown")
}

// TestAskedAgain: invalid arguments are requested once more, constrained to the schema.
func TestAskedAgain(t *testing.T) {
	call := `<tool_call>{"name": "append_memory", "arguments": {"fact": "tea"}}</tool_call>`
	for _, c := range []struct {
		name  string
		steps []string // answers
		want  string
		asks  int
	}{
		{"it can", []string{call, `{"entry": "tea"}`}, `{"entry": "tea"}`, 2},
		{"it writes the whole call", []string{call, strings.ReplaceAll(call, "fact", "entry")}, `{"entry": "tea"}`, 2},
		{"it still does not fit", []string{call, `{"fact": "tea"}`}, `{"fact": "tea"}`, 2},
		{"it fits", []string{strings.ReplaceAll(call, "fact", "entry")}, `{"entry": "tea"}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := script(t)
			for _, step := range c.steps {
				s.steps = append(s.steps, answers(step))
			}
			m := setup(t, &waits{}, nil, s.URL)
			got := ask(t, m, remember("Remember that."))
			if len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != c.want || s.requests() != c.asks {
				t.Fatalf("got %+v after %d requests", got, s.requests())
			}
			if c.asks < 2 {
				return
			}
			again := s.body(1)
			format, err := json.Marshal(again["response_format"])
			if err != nil || !strings.Contains(string(format), `"required":["entry"]`) || again["tool_choice"] != "none" || again["tools"] == nil {
				t.Errorf("asked again with %v, %v", again, err)
			}
		})
	}
}

// TestRefusesFormat: a server without structured output is asked for it once; the arguments stay.
func TestRefusesFormat(t *testing.T) {
	call := answers(`{"name": "append_memory", "arguments": {"fact": "tea"}}`)
	s := script(t, call, status(400, `{"error":{"message":"response_format is not supported"}}`), call)
	m := setup(t, &waits{}, nil, s.URL)
	for range 2 {
		if got := ask(t, m, remember("Remember that.")); len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != `{"fact": "tea"}` {
			t.Errorf("got %+v", got)
		}
	}
	expect.Equal(t, s.requests(), 3, "requests")
}

// TestNoCalls: tools are withheld from the model, and calls that it makes anyway are not shown as
// text.
func TestNoCalls(t *testing.T) {
	s := script(t, answers(`{"name": "append_memory", "arguments": {"fact": "tea"}}`))
	req := remember("Remember that.")
	req.NoCalls = true
	if got := ask(t, setup(t, &waits{}, nil, s.URL), req); got.Text != "" || len(got.ToolCalls) != 1 {
		t.Errorf("got %+v", got)
	}
	if s.requests() != 1 || s.body(0)["tools"] != nil {
		t.Errorf("%d requests, the first %v", s.requests(), s.body(0))
	}
}

// canned is a transport that always returns this response.
type canned struct {
	status int
	body   string
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: req}, nil
}

// Every answer of a server becomes a valid reply, or an *Error that names the model and hides the
// key.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"data: " + `{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n",
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{}"}}]}}]}` + "\ndata: [DONE]",
		`{"choices":[{"message":{"content":[{"text":"hi"}]}}]}`,
		`{"error":"no"}`, `data: {"error":{"code":429,"message":["a","b"]}}`, `{"error":{"message":{"x":1},"code":1.5}}`,
		": ping\n\nevent: x\ndata:\n\n", "<html>", "", "data: null", `{"detail":"` + testKey + `"}`,
	} {
		f.Add(s, uint16(200))
		f.Add(s, uint16(400))
	}
	f.Fuzz(func(t *testing.T, body string, status uint16) {
		m := New(Config{
			Models: []ModelConfig{{Name: "a", BaseURL: "http://model.example/v1", APIKey: testKey, Model: "m"}},
			Retry:  Retry{Attempts: 2, Sleep: (&waits{}).sleep},
		})
		m.models[0].client = &http.Client{Transport: canned{200 + int(status)%400, body}}
		reply, err := m.Complete(context.Background(), "chat", hello, func(string) {})
		var e *Error
		switch {
		case err == nil && reply.Text == "" && len(reply.ToolCalls) == 0:
			t.Fatal("an empty answer passed")
		case err == nil && !utf8.ValidString(reply.Text):
			t.Fatalf("not UTF-8: %q", reply.Text)
		case err != nil && (!errors.As(err, &e) || e.Model != "a" || strings.Contains(err.Error(), testKey)):
			t.Fatalf("error: %v", err)
		}
		for _, c := range reply.ToolCalls {
			if c.Name == "" || c.ID == "" {
				t.Fatalf("call: %+v", c)
			}
		}
	})
}

// An endless answer is aborted.
func TestAnswerTooLarge(t *testing.T) {
	m := setup(t, &waits{}, nil, "http://model.example/v1")
	for name, body := range map[string]string{
		"one line":   "data: " + strings.Repeat("x", maxAnswer+1),
		"many lines": strings.Repeat(": "+strings.Repeat("x", 1<<20)+"\n", maxAnswer>>20+1),
	} {
		m.models[0].client = &http.Client{Transport: canned{200, body}}
		_, err := m.Complete(t.Context(), "chat", hello, nil)
		if kindOf(t, err) != Garbled || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

func TestThink(t *testing.T) {
	tests := []struct{ name, in, text string }{
		{"none", "plain <b>text</b> 1 < 2", "plain <b>text</b> 1 < 2"},
		{"a block", "<think>\nplan\n</think>\n\nHi", "Hi"},
		{"the other tag, other case", "<Thinking>plan</THINKING>Hi", "Hi"},
		{"two blocks", "<think>one</think>Hi <think>two</think>there", "Hi there"},
		{"only a closing tag", "plan\nmore\n</think>\nHi", "Hi"},
		{"a tag named in the thinking", "<think>a <think> tag and </think> too</think>Hi", "Hi"},
		{"never closed at the beginning", "<think>plan without end", ""},
		{"never closed in a line", "The <think> tag opens", "The <think> tag opens"},
		{"in code", "Write `<think>` and `</think>`", "Write `<think>` and `</think>`"},
		{"in a fence", "So:\n```\n<think>x</think>\n```\nis it", "So:\n```\n<think>x</think>\n```\nis it"},
		{"half a tag at the end", "1 <thi", "1 <thi"},
		{"empty block", "<think>\n\n</think>\n\nHi", "Hi"},
		{"unbalanced fence in the thinking", "<think>```\nx</think>Hi", "Hi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if text, _ := stripThinking(tt.in, true); text != tt.text {
				t.Errorf("%q, want %q", text, tt.text)
			}
		})
	}
}

// A growing text shows no partial tags, its end is the answer, and nothing is invented.
func FuzzThink(f *testing.F) {
	for _, s := range []string{"<think>a</think>b", "a</think>b", "`<think>`", "```\n<think>\n```", "<thi<think></thin</think>", "x <thinking> y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text, found := stripThinking(in, true)
		shown, _ := stripThinking(in, false)
		if !strings.HasPrefix(text, shown) {
			t.Fatalf("%q was shown of %q", shown, text)
		}
		if tag := "</think>"; strings.HasPrefix(in, tag) && !found.unopened {
			t.Fatalf("%q has a closing tag alone", in)
		}
		if len(text) > len(in) {
			t.Fatalf("%q became %q", in, text)
		}
		if !strings.Contains(strings.ToLower(in), "think") && text != strings.TrimSpace(in) {
			t.Fatalf("%q became %q without any tag", in, text)
		}
	})
}

func TestProbe(t *testing.T) {
	list := func(owner string, ids ...string) http.HandlerFunc {
		var data []string
		for _, id := range ids {
			data = append(data, fmt.Sprintf(`{"id":%q,"owned_by":%q}`, id, owner))
		}
		return status(200, `{"object":"list","data":[`+strings.Join(data, ",")+`]}`)
	}
	tests := []struct {
		name  string
		steps []http.HandlerFunc
		says  string // "" = good
	}{
		{"there", []http.HandlerFunc{list("library", "other", "m")}, ""},
		{"there as latest", []http.HandlerFunc{list("library", "m:latest")}, ""},
		{"llama.cpp", []http.HandlerFunc{list("llamacpp", "/models/x.gguf")}, ""},
		{"not there", []http.HandlerFunc{list("library", "other", "third")}, "it has: other, third"},
		{"key", []http.HandlerFunc{status(401, "no "+testKey)}, "Correct api_key"},
		{"no list, but answers", []http.HandlerFunc{status(404, "404"), answers("hi")}, ""},
		{"not the API", []http.HandlerFunc{status(404, "404 page not found")}, "usually ends in /v1"},
		{"a web page", []http.HandlerFunc{status(200, "<html>")}, "Correct base_url"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := setup(t, &waits{}, nil, script(t, tt.steps...).URL).Probe(t.Context(), "a")
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("got %v, want %q", err, tt.says)
			case err != nil && strings.Contains(err.Error(), testKey):
				t.Errorf("the key shows: %v", err)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	m := setup(t, &waits{}, nil, gone.URL)
	if err := m.Probe(t.Context(), "a"); kindOf(t, err) != Unreachable || !strings.Contains(err.Error(), "Start the server") {
		t.Error(err)
	}
	if err := m.Probe(t.Context(), "b"); kindOf(t, err) != NotFound {
		t.Error(err)
	}
}
