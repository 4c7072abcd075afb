package history

import (
	"context"
	"database/sql"
	"strings"
)

// Quoted is a message that another message quotes. It is data, not part of the conversation.
type Quoted struct {
	Event string `json:"event,omitempty"` // the transport's id; may be empty
	Text  string `json:"text"`            // as the model reads it: sender, then text
}

// Quotes is the text of all quotes of m, as the model reads it.
func (m *Message) Quotes() string {
	lines := make([]string, len(m.Quoted))
	for i, q := range m.Quoted {
		lines[i] = q.Text
	}
	return strings.Join(lines, "\n")
}

// redact empties q if it quotes event, and reports whether it did.
func (q *Quoted) redact(event string) bool {
	if q.Event != event || q.Text == redactedText {
		return false
	}
	q.Text = redactedText
	return true
}

// removeTexts removes texts from q, and reports whether it contained one.
func (q *Quoted) removeTexts(texts []string) (changed bool) {
	for _, t := range texts {
		if t != "" && strings.Contains(q.Text, t) {
			q.Text, changed = strings.ReplaceAll(q.Text, t, forgottenText), true
		}
	}
	return changed
}

// rewriteQuotes applies change to the quotes of messages whose quotes contain needle.
func rewriteQuotes(ctx context.Context, tx *sql.Tx, needle string, change func(*Quoted) bool) error {
	return rewrite(ctx, tx, `message`, `quoted`, eachItem(change), `quoted <> '' AND instr(quoted, ?) > 0`, needle)
}
