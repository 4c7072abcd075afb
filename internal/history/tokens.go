package history

import (
	"strings"

	"reverie/internal/llm"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// What a message and a call take beside their words, in tokens.
const messageFrame = 4

// Tokens is what m takes in a request, by estimate, without what the prompt added
// to it.
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

// Tokens is what all of them take.
func Tokens(all []Message) int {
	n := 0
	for i := range all {
		n += all[i].Tokens()
	}
	return n
}

// Least is the integrity of what is made from all of them.
func MinIntegrity(all []Message) trust.Integrity {
	least := trust.Owner
	for i := range all {
		least = min(least, all[i].Integrity())
	}
	return least
}

// OneLine folds white space and cuts to n characters, for lists.
func OneLine(line string, n int) string { return text.Cut(strings.Join(strings.Fields(line), " "), n) }
