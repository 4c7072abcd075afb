package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reverie/internal/llm"
)

// guided are the tools that have a guide among the default files.
var guided = strings.Fields("add_skill append_memory goal search_memory spawn_sub_session task")

// TestShippedGuides: where the budget of the instructions has room for them, the tools that
// are offered have short guides; smaller tiers have none.
func TestShippedGuides(t *testing.T) {
	w := shippedWorld(t, Stable)
	w.tools = slices.Concat(w.tools, guided)
	w.restart() // it knows these tools
	for _, w.mode = range shippedModes {
		for w.tier = 1; w.tier <= highestTier; w.tier++ {
			name := fmt.Sprintf("%s, tier %d", w.mode, w.tier)
			w.offers(w.tier)
			w.tools = append(w.tools, guided...)
			slices.Sort(w.tools)
			w.tools = slices.Compact(w.tools)
			p := w.assemble()
			if len(p.Report.Problems) > 0 {
				t.Errorf("%s: problems: %v", name, p.Report.Problems)
			}
			_, guides, _ := strings.Cut(p.Prefix, "# Tool Guides\n")
			guides, _, _ = strings.Cut(guides, divider)
			if w.tier < 4 {
				if guides != "" {
					t.Errorf("%s: %s", name, guides)
				}
				continue
			}
			var of []string
			for line := range strings.Lines(guides) {
				tool, text, _ := strings.Cut(line, ": ")
				of = append(of, tool)
				if n := len(strings.Fields(text)); n < 10 || n > 60 {
					t.Errorf("%s: the guide of %s has %d words", name, tool, n)
				}
			}
			if !slices.Equal(of, guided) {
				t.Errorf("%s: guides of %q:\n%s", name, of, guides)
			}
			if rep := p.Report.Instructions; rep.Tokens+sectionFrame+llm.EstimateTokens(guides) > rep.Budget {
				t.Errorf("%s: instructions and guides take %d+%d of %d tokens", name, rep.Tokens, sectionFrame+llm.EstimateTokens(guides), rep.Budget)
			}
		}
	}
}

// TestGuidesByTier: a guide can have sections, as BASE_PROMPT.txt has; one that is missing says nothing.
func TestGuidesByTier(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("prompts/tools/task.txt", "<!-- section: guide tiers: 1-2 -->\nShort, {agent_name}.\n\n<!-- section: guide tiers: 3-5 -->\nLong.\n")
	for tier, want := range map[int]string{1: "task: Short, Reverie.", 2: "task: Short, Reverie.", 3: "task: Long.", 5: "task: Long."} {
		w.tier = tier
		w.asks("Hello")
		w.expect(true, "# Tool Guides\n"+want+"\n\n---")
	}
	w.file("prompts/tools/task.txt", "<!-- section: guide requires: shell -->\nLong.\n")
	w.asks("Hello")
	w.expect(false, "# Tool Guides")
	if got := w.problems(); len(got) != 1 || got[0] != `prompts/tools/task.txt:1: section guide names an unknown tool "shell"` {
		t.Errorf("problems: %q", got)
	}
}
