package llm

import (
	"bytes"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	openai "github.com/sashabaranov/go-openai"
)

func TestParseThink(t *testing.T) {
	for in, want := range map[string]Think{"": ThinkDefault, "default": ThinkDefault, " Off\n": ThinkOff, "low": ThinkLow, "MEDIUM": ThinkMedium, "high": ThinkHigh} {
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

// thinking is what a request says about it.
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

// A refused level is learned, the answer still arrives, and what the server does
// understand is said from then on.
func TestLearnsHowToTellThinking(t *testing.T) {
	bad := func(text string) http.HandlerFunc { return status(400, `{"error":{"message":"`+text+`"}}`) }
	noArgument := bad("Unrecognized request argument supplied: reasoning_effort")
	noNone := bad("Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', and 'high'.")
	noTemplate := bad("Unrecognized request argument supplied: chat_template_kwargs")
	vague := bad("invalid request")
	tests := []struct {
		name   string
		level  Think
		steps  []http.HandlerFunc // refusals before the answer
		want   []string           // what the requests say, once more than refusals
		again  Think              // a level asked for afterwards
		then   string             // how it is said
		thinks bool
	}{
		{"nothing refused", ThinkOff, nil, []string{"none+template"}, ThinkHigh, "high", true},
		{"default", ThinkDefault, nil, []string{""}, ThinkMedium, "medium", true},
		{"unknown argument", ThinkHigh, []http.HandlerFunc{noArgument}, []string{"high", ""}, ThinkHigh, "", false},
		{"Ollama, level", ThinkMedium, []http.HandlerFunc{status(500, `{"error":{"message":"think value \"medium\" is not supported for this model"}}`)},
			[]string{"medium", ""}, ThinkOff, "none+template", false},
		{"Ollama, no thinking", ThinkLow, []http.HandlerFunc{bad("registry.ollama.ai/library/x does not support thinking")}, []string{"low", ""}, ThinkLow, "", false},
		{"cannot stop", ThinkOff, []http.HandlerFunc{noNone}, []string{"none+template", "low+template"}, ThinkHigh, "high", true},
		{"no template", ThinkOff, []http.HandlerFunc{noTemplate}, []string{"none+template", "none"}, ThinkOff, "none", true},
		{"knows nothing", ThinkOff, []http.HandlerFunc{noTemplate, noArgument, noArgument}, []string{"none+template", "none", "low", ""}, ThinkOff, "", false},
		{"names the wrong one", ThinkOff, []http.HandlerFunc{noArgument, noArgument, noArgument},
			[]string{"none+template", "low+template", "template", ""}, ThinkOff, "", false},
		{"does not say", ThinkHigh, []http.HandlerFunc{vague}, []string{"high", ""}, ThinkHigh, "", false},
		{"does not say, off", ThinkOff, []http.HandlerFunc{vague, vague}, []string{"none+template", "none", "low"}, ThinkHigh, "high", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, w := script(t, append(tt.steps, answers("fine"))...), &waits{}
			var log bytes.Buffer
			m := setup(t, w, &log, s.URL)
			req := hello
			req.Think = tt.level
			if got := ask(t, m, req); got.Text != "fine" {
				t.Errorf("got %q", got.Text)
			}
			if m.Thinks("chat") != tt.thinks {
				t.Errorf("thinks: %v", !tt.thinks)
			}
			req.Think = tt.again
			ask(t, m, req)
			var got []string
			for i := range s.requests() {
				got = append(got, thinking(s.body(i)))
			}
			if d := cmp.Diff(append(tt.want, tt.then), got); d != "" {
				t.Error(d)
			}
			if len(w.ds) != 0 || strings.Contains(log.String(), "model failed") {
				t.Errorf("%d waits, log:\n%s", len(w.ds), &log)
			}
		})
	}
}

// A request that is bad by itself fails for what the server says, and teaches
// nothing.
func TestBadRequestTeachesNothing(t *testing.T) {
	s := script(t, status(400, `{"error":{"message":"messages: first message must use the user role"}}`))
	m := setup(t, &waits{}, nil, s.URL)
	req := hello
	req.Think = ThinkOff
	for range 2 {
		_, err := m.Complete(t.Context(), "chat", req, nil)
		if kindOf(t, err) != Failed || !strings.Contains(err.Error(), "first message") {
			t.Error(err)
		}
	}
	if m.models[0].known() != 0 || thinking(s.body(0)) != "none+template" || thinking(s.body(4)) != "none+template" {
		t.Errorf("learned %b", m.models[0].known())
	}
	if s.requests() != 8 {
		t.Errorf("%d requests", s.requests())
	}
	if !m.Thinks("no such role") {
		t.Error("an unknown role is not chat")
	}
}

// An error that speaks of thinking without having been told anything about it
// is no refusal of a level.
func TestNothingSaidNothingLearned(t *testing.T) {
	s := script(t, status(400, `{"error":{"message":"reasoning_effort is odd"}}`))
	m := setup(t, &waits{}, nil, s.URL)
	if _, err := m.Complete(t.Context(), "chat", hello, nil); kindOf(t, err) != Failed || s.requests() != 1 || !m.Thinks("chat") {
		t.Errorf("%v after %d requests, thinks %v", err, s.requests(), m.Thinks("chat"))
	}
}

// go-openai refuses levels of some of OpenAI's models by itself.
func TestLocalRefusalOfALevel(t *testing.T) {
	s := script(t, answers("fine"))
	m := configured(t, Config{Models: []ModelConfig{{Name: "a", BaseURL: s.URL, Model: openai.GPT6Astra}}, Log: slog.New(slog.DiscardHandler)})
	req := hello
	req.Think = ThinkOff
	ask(t, m, req)
	if got := thinking(s.body(0)); s.requests() != 1 || got != "low+template" {
		t.Errorf("%q in %d requests", got, s.requests())
	}
}
