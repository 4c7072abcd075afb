package session

import (
	"encoding/json"
	"slices"
	"testing"

	"reverie/internal/llm"
)

// TestToolBudget: the descriptions of the tools stay within the budget of each tier, none of the shipped ones
// is left out for its size, and there is room for a new one without any other change. A tool that has
// no room is left out, and its tokens are in no budget.
func TestToolBudget(t *testing.T) {
	w := newWorld(t, t.TempDir())
	full, brief := w.cfg.Tools.Specs(), w.cfg.Tools.Brief()
	if toolBudget[1] > 600 {
		t.Errorf("tier 1 has %d tokens for tools", toolBudget[1])
	}
	weather := llm.ToolSpec{Name: "weather", Description: "Tell the weather at a place, now or on a day of the next week.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string","description":"A town."},` +
			`"day":{"type":"string","description":"Such as 2026-12-24."}},"required":["place"],"additionalProperties":false}`)}
	large := weather
	large.Name, large.Parameters = "large", json.RawMessage(`{"type":"object","properties":{},"description":"`+string(make([]byte, 40_000))+`"}`)
	now := offers(full, brief, true)
	then := offers(append(slices.Clone(full), weather, large), append(slices.Clone(brief), weather, large), true)
	for _, m := range modes {
		for tier := 1; tier <= topTier; tier++ {
			o := now[m.name][tier]
			for _, s := range m.policy().Of(full) {
				if tier >= costly[s.Name] != slices.Contains(o.names, s.Name) {
					t.Errorf("%s, tier %d: is %s offered? %v", m.name, tier, s.Name, o.names)
				}
			}
			if m.name == modes[0].name {
				t.Logf("tier %d: %4d of %4d tokens, %d tools", tier, o.tokens, toolBudget[tier], len(o.names))
			}
			if o.tokens > toolBudget[tier] {
				t.Errorf("%s, tier %d: %d tokens of %d", m.name, tier, o.tokens, toolBudget[tier])
			}
			with := then[m.name][tier]
			if p := m.policy(); slices.Contains(with.names, "weather") != p.Allows("weather") || slices.Contains(with.names, "large") ||
				with.tokens != o.tokens+map[bool]int{true: tokensOf(weather)}[p.Allows("weather")] {
				t.Errorf("%s, tier %d: with a new tool it offers %v, %d tokens", m.name, tier, with.names, with.tokens)
			}
		}
	}
	w.say(t, "$1", "hello")
	past := w.past(t)
	s := w.sessionOf("!dm")
	how := result(s.manner(t.Context(), s.place(Inbound{Sender: owner, Private: true}), past, true))(t)
	how.tier = 1
	if turn := s.promptTurn(Inbound{Sender: owner, Private: true}, past, how); turn.ToolTokens != now[how.mode.name][1].tokens || turn.ToolTokens < 200 {
		t.Errorf("the prompt of tier 1 counts %d tokens of tools", turn.ToolTokens)
	}
}
