package history

import (
	"strings"

	"reverie/internal/llm"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// messageFrame is the number of tokens of a message or call besides its text.
const messageFrame = 4

// Tokens estimates the tokens of m in a request, without its tail.
func (m *Message) Tokens() int {
	n := messageFrame + llm.EstimateTokens(m.Header) + llm.EstimateTokens(m.Quotes()) + llm.EstimateTokens(m.Text)
	for _, c := range m.Calls {
		n += messageFrame + llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
	}
	for i := range m.Files {
		n += m.Files[i].Tokens()
	}
	return n
}

// Tokens sums up the tokens of all.
func Tokens(all []Message) int {
	n := 0
	for i := range all {
		n += all[i].Tokens()
	}
	return n
}

// MinIntegrity is the lowest integrity of all.
func MinIntegrity(all []Message) trust.Integrity {
	least := trust.Owner
	for i := range all {
		least = min(least, all[i].Integrity())
	}
	return least
}

// OneLine folds white space and truncates line to n characters.
func OneLine(line string, n int) string { return text.Cut(strings.Join(strings.Fields(line), " "), n) }
