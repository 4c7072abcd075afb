package compact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
)

const (
	newestResults = 3   // tool results that are never cleared
	shortResult   = 200 // characters up to which a result is never cleared
)

// clearToolResults replaces all but the newest tool results by one line each. It does so if that
// saves at least minSaved tokens.
func clearToolResults(past []history.Message, minSaved int) []history.Message {
	results := 0
	from := len(past)
	for from > 0 && results < newestResults {
		from--
		if past[from].Role == llm.Tool {
			results++
		}
	}
	out := slices.Clone(past)
	calls := map[string]llm.ToolCall{}
	for i := range out[:from] {
		m := &out[i]
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		if m.Role != llm.Tool || utf8.RuneCountInString(m.Text) <= shortResult {
			continue
		}
		if line := clearedResult(calls[m.CallID], m.Text); len(line) < len(m.Text) {
			m.Text = line
		}
	}
	if history.Tokens(past)-history.Tokens(out) < minSaved {
		return past
	}
	return out
}

// clearedResult summarises a tool result in one line: call, length and outcome.
func clearedResult(c llm.ToolCall, result string) string {
	how := fmt.Sprintf("%d lines, ok", strings.Count(strings.TrimRight(result, "\n"), "\n")+1)
	if strings.HasPrefix(result, "error") {
		how = history.OneLine(result, 80)
	}
	return fmt.Sprintf("[%s %s: %s. Cleared to save room; call it again if it is needed.]", c.Name, history.OneLine(c.Arguments, 80), how)
}
