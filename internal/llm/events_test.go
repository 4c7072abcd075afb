package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// canned is a network that always gives this response.
type canned struct {
	status int
	body   string
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: req}, nil
}

// Whatever a server sends, it ends as a sound answer or as an *Error that names
// the model and keeps the key.
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
		m := configured(t, Config{
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

// A server that never stops is stopped.
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
