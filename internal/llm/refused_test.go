package llm

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/bits"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// optionalParts is what a request has of the parts that some servers refuse.
func optionalParts(body map[string]any) string {
	var all []string
	add := func(is bool, part string) {
		if is {
			all = append(all, part)
		}
	}
	add(thinking(body) != "", thinking(body))
	add(body["temperature"] != nil, fmt.Sprint("t=", body["temperature"]))
	add(markedIn(body) != nil, fmt.Sprint("marks", markedIn(body)))
	add(body["tools"] != nil, "tools")
	add(body["stream_options"] == nil, "no-counts")
	add(body["max_completion_tokens"] != nil && body["max_tokens"] == nil, "new-limit")
	return strings.Join(all, " ")
}

// TestLearnsWhatServersRefuse: what a server does not understand is left out from then on, the answer still
// arrives without a failed try, and the log says it once. What it does not name is sought part by part: the
// temperature is the last to go, and only what was at fault is remembered. A request that is bad by itself
// fails for what the server says, and teaches nothing.
func TestLearnsWhatServersRefuse(t *testing.T) {
	bad := func(text string) http.HandlerFunc { return status(400, `{"error":{"message":"`+text+`"}}`) }
	cold, own := float32(0), float32(0.5)
	noArgument, noTemplate := bad("Unrecognized request argument supplied: reasoning_effort"), bad("Unrecognized request argument supplied: chat_template_kwargs")
	vague := bad("bad request")
	marked := loop
	marked.Marks = []int{0, 3}
	noParts := status(422, `{"detail":[{"loc":["body","messages",0,"content"],"msg":"Input should be a valid string"}]}`)
	user := hello.Messages
	type steps = []http.HandlerFunc
	tests := []struct {
		name    string
		config  ModelConfig
		req     Request
		steps   steps    // refusals before the answer
		want    []string // what the requests hold, once more than refusals
		then    string   // what one afterwards holds
		again   Think    // of the one afterwards; "" = the same
		learned quirk
		fails   string // of a request that fails each time
	}{
		{name: "stream_options", req: hello, steps: steps{bad("Unrecognized request argument supplied: stream_options")},
			want: []string{"", "no-counts"}, then: "no-counts", learned: noStreamOptions},
		{name: "tools", req: Request{Messages: user, Tools: []ToolSpec{{Name: "task", Description: "d"}}},
			steps: steps{bad("registry.ollama.ai/library/x does not support tools")}, want: []string{"tools", ""}, learned: noTools},
		{name: "max_tokens", req: hello, steps: steps{bad("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")},
			want: []string{"", "new-limit"}, then: "new-limit", learned: newMaxTokens},

		{name: "a temperature", req: Request{Messages: user, Temperature: &own}, want: []string{"t=0.5"}, then: "t=0.5"},
		{name: "zero", req: Request{Messages: user, Temperature: &cold}, want: []string{"t=1e-45"}, then: "t=1e-45"},
		{name: "the configured one", config: ModelConfig{Temperature: &cold}, req: Request{Messages: user, Temperature: &own},
			want: []string{"t=1e-45"}, then: "t=1e-45"},
		{name: "temperature refused", req: Request{Messages: user, Temperature: &own}, steps: steps{bad("invalid temperature: only 1 is allowed for this model")},
			want: []string{"t=0.5", ""}, learned: noTemperature},
		{name: "temperature refused, vaguely", req: Request{Messages: user, Temperature: &own}, steps: steps{vague}, want: []string{"t=0.5", ""}, learned: noTemperature},
		{name: "configured and refused", config: ModelConfig{Temperature: &own}, req: Request{Messages: user, Temperature: &cold},
			steps: steps{bad("Unknown parameter: temperature")}, want: []string{"t=0.5", ""}, learned: noTemperature},
		{name: "a temperature that was not sent", req: hello, steps: steps{bad("temperature is not supported")}, want: []string{""}, fails: "temperature is not"},
		{name: "the temperature goes last", req: Request{Messages: user, Think: ThinkHigh, Temperature: &own}, steps: steps{vague, vague},
			want: []string{"high t=0.5", "t=0.5", ""}, then: "high", learned: noTemperature},

		{name: "thinking", req: Request{Messages: user, Think: ThinkOff}, want: []string{"none+template"}, then: "high", again: ThinkHigh},
		{name: "thinking as usual", req: hello, want: []string{""}, then: "medium", again: ThinkMedium},
		{name: "unknown argument", req: Request{Messages: user, Think: ThinkHigh}, steps: steps{noArgument}, want: []string{"high", ""}, learned: noThink},
		{name: "Ollama, level", req: Request{Messages: user, Think: ThinkMedium},
			steps: steps{status(500, `{"error":{"message":"think value \"medium\" is not supported for this model"}}`)},
			want:  []string{"medium", ""}, then: "none+template", again: ThinkOff, learned: noThink},
		{name: "Ollama, no thinking", req: Request{Messages: user, Think: ThinkLow}, steps: steps{bad("registry.ollama.ai/library/x does not support thinking")},
			want: []string{"low", ""}, learned: noThink},
		{name: "cannot stop", req: Request{Messages: user, Think: ThinkOff},
			steps: steps{bad("Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', and 'high'.")},
			want:  []string{"none+template", "low+template"}, then: "high", again: ThinkHigh, learned: noThinkOff},
		{name: "no template", req: Request{Messages: user, Think: ThinkOff}, steps: steps{noTemplate}, want: []string{"none+template", "none"}, then: "none", learned: noTemplateArgs},
		{name: "knows nothing", req: Request{Messages: user, Think: ThinkOff}, steps: steps{noTemplate, noArgument, noArgument},
			want: []string{"none+template", "none", "low", ""}, learned: noTemplateArgs | thinkQuirks},
		{name: "names the wrong one", req: Request{Messages: user, Think: ThinkOff}, steps: steps{noArgument, noArgument, noArgument},
			want: []string{"none+template", "low+template", "template", ""}, learned: noTemplateArgs | thinkQuirks},
		{name: "does not say", req: Request{Messages: user, Think: ThinkHigh}, steps: steps{vague}, want: []string{"high", ""}, learned: noThink},
		{name: "does not say, off", req: Request{Messages: user, Think: ThinkOff}, steps: steps{vague, vague},
			want: []string{"none+template", "none", "low"}, then: "high", again: ThinkHigh, learned: noThinkOff},
		{name: "thinking that was not asked for", req: hello, steps: steps{bad("reasoning_effort is odd")}, want: []string{""}, fails: "is odd"},
		{name: "bad by itself", req: Request{Messages: user, Think: ThinkOff}, steps: steps{bad("messages: first message must use the user role")},
			want: []string{"none+template", "none", "low", ""}, fails: "first message"},

		{name: "marks", config: ModelConfig{CacheMarks: true}, req: marked, want: []string{"marks[0 1] tools"}, then: "marks[0 1] tools"},
		{name: "nowhere", config: ModelConfig{CacheMarks: true}, req: marked, steps: steps{noParts},
			want: []string{"marks[0 1] tools", "tools"}, then: "tools", learned: noMarks},
		{name: "does not say, with marks", config: ModelConfig{CacheMarks: true}, req: marked, steps: steps{vague},
			want: []string{"marks[0 1] tools", "tools"}, then: "tools", learned: noMarks},
		{name: "marks and a level", config: ModelConfig{CacheMarks: true}, req: Request{Messages: user, Marks: []int{0}, Think: ThinkHigh},
			steps: steps{bad("unknown field reasoning_effort")}, want: []string{"high marks[0]", "marks[0]"}, then: "marks[0]", learned: noThink},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := append(tt.want, tt.then)
			if tt.fails != "" {
				want = append(tt.want, tt.want...)
			} else {
				tt.steps = append(tt.steps, answers("fine"))
			}
			s, w := script(t, tt.steps...), &waits{}
			var log bytes.Buffer
			c := tt.config
			c.Name, c.BaseURL = "a", s.URL
			if c.Model == "" {
				c.Model = "m"
			}
			m := configured(t, Config{Models: []ModelConfig{c}, Retry: Retry{Sleep: w.sleep}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for range 2 {
				got, err := m.Complete(t.Context(), "chat", tt.req, nil)
				if tt.fails == "" && (err != nil || got.Text != "fine") {
					t.Errorf("got %q, %v", got.Text, err)
				}
				if tt.fails != "" && (kindOf(t, err) != Failed || !strings.Contains(err.Error(), tt.fails)) {
					t.Error(err)
				}
				if tt.again != "" {
					tt.req.Think = tt.again
				}
			}
			var got []string
			for i := range s.requests() {
				got = append(got, optionalParts(s.body(i)))
			}
			if d := cmp.Diff(want, got); d != "" || len(w.ds) != 0 {
				t.Errorf("%d waits, %s", len(w.ds), d)
			}
			if known := m.models[0].known(); known != tt.learned || m.Thinks("no such role") != (known&noThink == 0) {
				t.Errorf("learned %b, not %b", known, tt.learned)
			}
			if warned := strings.Count(log.String(), "WARN") - strings.Count(log.String(), "model failed"); warned != bits.OnesCount16(uint16(tt.learned)) {
				t.Errorf("log:\n%s", &log)
			}
		})
	}
}
