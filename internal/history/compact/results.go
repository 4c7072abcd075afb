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
	newestResults = 3   // tool results that micro leaves alone
	shortResult   = 200 // characters; a result that short is never cleared
)

// micro makes a line of each tool result but the newest, if that saves at least so
// many tokens.
func clearToolResults(past []history.Message, least int) []history.Message {
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
	if history.Tokens(past)-history.Tokens(out) < least {
		return past
	}
	return out
}

// clearedResult is a tool result in a line: which call it was of, how long it was and
// how it went.
func clearedResult(c llm.ToolCall, result string) string {
	how := fmt.Sprintf("%d lines, ok", strings.Count(strings.TrimRight(result, "\n"), "\n")+1)
	if strings.HasPrefix(result, "error") {
		how = history.OneLine(result, 80)
	}
	return fmt.Sprintf("[%s %s: %s. Cleared to save room; call it again if it is needed.]", c.Name, history.OneLine(c.Arguments, 80), how)
}
