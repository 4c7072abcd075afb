package history

import (
	"context"
	"database/sql"
	"strings"
)

// Quoted is one thing that a message quotes: what somebody else said, or the same
// person before. It is data, and of nobody who is answered.
type Quoted struct {
	Event string `json:"event,omitempty"` // the transport's id; empty = none
	Text  string `json:"text"`            // lines that say who said it, and then what, as the model reads them
}

// Quotes is all that m quotes, as the model reads it; empty = nothing.
func (m *Message) Quotes() string {
	lines := make([]string, len(m.Quoted))
	for i, q := range m.Quoted {
		lines[i] = q.Text
	}
	return strings.Join(lines, "\n")
}

// takeBack empties q if it is the event, and reports whether it did.
func (q *Quoted) redact(event string) bool {
	if q.Event != event || q.Text == redactedText {
		return false
	}
	q.Text = redactedText
	return true
}

// without takes texts out of q, and reports whether one was in it.
func (q *Quoted) removeTexts(texts []string) (changed bool) {
	for _, t := range texts {
		if t != "" && strings.Contains(q.Text, t) {
			q.Text, changed = strings.ReplaceAll(q.Text, t, forgottenText), true
		}
	}
	return changed
}

// unsay changes what messages quote, in the rows that hold needle.
func rewriteQuotes(ctx context.Context, tx *sql.Tx, needle string, change func(*Quoted) bool) error {
	return rewrite(ctx, tx, `message`, `quoted`, eachItem(change), `quoted <> '' AND instr(quoted, ?) > 0`, needle)
}
