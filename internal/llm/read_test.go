package llm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// remember offers one tool, whose arguments fit when they have an entry.
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

// TestCallInText: a call that streams in as text is a call of the reply, and the stream shows none of it.
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
	if d := cmp.Diff([]string{"I will."}, seen); d != "" {
		t.Errorf("shown: %s", d)
	}
}

// TestAskedAgain: arguments that do not fit are asked for once, bound to the schema.
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

// TestRefusesFormat: a server that cannot bind an answer is asked for that once; the arguments stay.
func TestRefusesFormat(t *testing.T) {
	call := answers(`{"name": "append_memory", "arguments": {"fact": "tea"}}`)
	s := script(t, call, status(400, `{"error":{"message":"response_format is not supported"}}`), call)
	m := setup(t, &waits{}, nil, s.URL)
	for range 2 {
		if got := ask(t, m, remember("Remember that.")); len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != `{"fact": "tea"}` {
			t.Errorf("got %+v", got)
		}
	}
	if s.requests() != 3 {
		t.Errorf("%d requests, want 3", s.requests())
	}
}

// TestNoCalls: without tools the model is told of none, and what it calls all the same is no text.
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
