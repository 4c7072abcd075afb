package history

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/llm"
)

// Step is the report on one way of making a conversation shorter. All sizes are
// tokens, by estimate.
type Step struct {
	Name     string
	Messages int // that it changed or took out
	Before   int
	After    int
}

// Names of the steps, from the mildest on.
const (
	QuoteStep = "quotes" // what older messages quoted is left out
	MicroStep = "micro"  // old tool results became a line each
	SoftStep  = "soft"   // long tool results lost their middle
	HardStep  = "hard"   // old tool results became a line each, however few they are
	FullStep  = "full"   // older messages are summarised
	CutStep   = "cut"    // what must stay lost its middle
)

const (
	newestResults  = 3     // tool results that micro leaves alone
	protectedTurns = 3     // the last answers of the model, and what came after them
	shortResult    = 200   // characters; a result that short is never cleared
	longResult     = 4_000 // characters; a longer one is trimmed
	resultEnds     = 1_500 // characters that are kept of its beginning and of its end
)

// micro makes a line of each tool result but the newest, if that saves at least so
// many tokens.
func micro(past []Message, least int) ([]Message, Step) {
	results := 0
	from := len(past)
	for from > 0 && results < newestResults {
		from--
		if past[from].Role == llm.Tool {
			results++
		}
	}
	out, step := change(past, from, MicroStep, clearResult)
	if step.Before-step.After < least {
		return past, Step{Name: MicroStep, Before: step.Before, After: step.Before}
	}
	return out, step
}

// soft takes the middle out of long tool results that are not protected.
func soft(past []Message) ([]Message, Step) {
	return change(past, protected(past), SoftStep, func(_ []Message, m *Message) string {
		if utf8.RuneCountInString(m.Text) <= longResult {
			return m.Text
		}
		return headTail(m.Text, resultEnds, resultEnds)
	})
}

// hard makes a line of each tool result that is not protected.
func hard(past []Message) ([]Message, Step) {
	return change(past, protected(past), HardStep, clearResult)
}

// protected is where the last answers of the model begin.
func protected(past []Message) int {
	turns := 0
	for i, m := range slices.Backward(past) {
		if m.Role == llm.Assistant {
			if turns++; turns == protectedTurns {
				return i
			}
		}
	}
	return 0
}

// change gives the tool results before the index end another text.
func change(past []Message, end int, name string, text func([]Message, *Message) string) ([]Message, Step) {
	step := Step{Name: name, Before: Tokens(past)}
	step.After = step.Before
	out := past
	for i := range past[:end] {
		if past[i].Role != llm.Tool {
			continue
		}
		short := text(past[:i], &past[i])
		if len(short) >= len(past[i].Text) {
			continue
		}
		if step.Messages++; step.Messages == 1 {
			out = slices.Clone(past)
		}
		out[i].Text = short
		step.After += out[i].Tokens() - past[i].Tokens()
	}
	return out, step
}

// clearResult is a tool result in a line: which call it was of, how long it was and
// how it went.
func clearResult(before []Message, m *Message) string {
	if utf8.RuneCountInString(m.Text) <= shortResult {
		return m.Text
	}
	what := "the tool"
	if c := callOf(before, m.CallID); c != nil {
		what = c.Name + " " + OneLine(c.Arguments, 80)
	}
	how := fmt.Sprintf("%d lines, ok", strings.Count(strings.TrimRight(m.Text, "\n"), "\n")+1)
	if strings.HasPrefix(m.Text, "error") {
		how = OneLine(m.Text, 80)
	}
	return fmt.Sprintf("[%s: %s. Cleared to save room; call it again if it is needed.]", what, how)
}

// callOf finds the call that a result answers, among the messages before it.
func callOf(before []Message, id string) *llm.ToolCall {
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
