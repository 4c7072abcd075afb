package llm

import (
	"maps"
	"strings"
	"testing"
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
