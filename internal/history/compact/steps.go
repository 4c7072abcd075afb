package compact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// Step is what came of one way of making a conversation shorter. All sizes are
// tokens, by estimate.
type Step struct {
	Name     string
	Messages int // that it changed or took out
	Before   int
	After    int
}

// Names of the steps, from the mildest on.
const (
	quoteStep = "quotes" // what older messages quoted is left out
	microStep = "micro"  // old tool results became a line each
	fullStep  = "full"   // older messages are summarised
	cutStep   = "cut"    // what must stay lost its middle
)

const (
	newestResults = 3   // tool results that micro leaves alone
	shortResult   = 200 // characters; a result that short is never cleared
)

// micro makes a line of each tool result but the newest, if that saves at least so
// many tokens.
func micro(past []history.Message, least int) ([]history.Message, Step) {
	results := 0
	from := len(past)
	for from > 0 && results < newestResults {
		from--
		if past[from].Role == llm.Tool {
			results++
		}
	}
	step := Step{Name: microStep, Before: history.Tokens(past)}
	step.After = step.Before
	out := slices.Clone(past)
	for i := range past[:from] {
		if past[i].Role != llm.Tool {
			continue
		}
		if short := clearResult(past[:i], &past[i]); len(short) < len(past[i].Text) {
			out[i].Text = short
			step.Messages++
			step.After += out[i].Tokens() - past[i].Tokens()
		}
	}
	if step.Before-step.After < least {
		return past, Step{}
	}
	return out, step
}

// clearResult is a tool result in a line: which call it was of, how long it was and
// how it went.
func clearResult(before []history.Message, m *history.Message) string {
	if utf8.RuneCountInString(m.Text) <= shortResult {
		return m.Text
	}
	what := "the tool"
	if c := callOf(before, m.CallID); c != nil {
		what = c.Name + " " + history.OneLine(c.Arguments, 80)
	}
	how := fmt.Sprintf("%d lines, ok", strings.Count(strings.TrimRight(m.Text, "\n"), "\n")+1)
	if strings.HasPrefix(m.Text, "error") {
		how = history.OneLine(m.Text, 80)
	}
	return fmt.Sprintf("[%s: %s. Cleared to save room; call it again if it is needed.]", what, how)
}

// callOf finds the call that a result answers, among the messages before it.
func callOf(before []history.Message, id string) *llm.ToolCall {
	for i := len(before) - 1; i >= 0; i-- {
		for j := range before[i].Calls {
			if before[i].Calls[j].ID == id {
				return &before[i].Calls[j]
			}
		}
		if before[i].Role == llm.User {
			break // a call and its result stand in one turn
		}
	}
	return nil
}

// unquote leaves out what messages quote, but for the person's newest ones: who is
// answered now may refer to it, and what was said since stands in the answers.
func unquote(past []history.Message) ([]history.Message, Step) {
	step := Step{Name: quoteStep, Before: history.Tokens(past)}
	step.After = step.Before
	first, _ := newestSaid(past)
	out := past
	for i := range past[:first] {
		if len(past[i].Quoted) == 0 {
			continue
		}
		if step.Messages++; step.Messages == 1 {
			out = append([]history.Message(nil), past...)
		}
		out[i].Quoted = nil
		step.After += out[i].Tokens() - past[i].Tokens()
	}
	return out, step
}
