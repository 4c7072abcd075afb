package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"reverie/internal/store"
)

// Quoted is one thing that a message quotes: what somebody else said, or the same
// person before. It is data, and of nobody who is answered.
type Quoted struct {
	Event string `json:"event,omitempty"` // the transport's id; empty = none
	Text  string `json:"text"`            // lines that say who said it, and then what, as the model reads them
}

// Quotes is all that m quotes, as the model reads it; empty = nothing.
func (m *Message) Quotes() string {
	if len(m.Quoted) == 0 {
		return ""
	}
	lines := make([]string, len(m.Quoted))
	for i, q := range m.Quoted {
		lines[i] = q.Text
	}
	return strings.Join(lines, "\n")
}

// takeBack empties q if it is the event, and reports whether it did.
func (q *Quoted) takeBack(event string) bool {
	if q.Event != event || q.Text == takenBack {
		return false
	}
	q.Text = takenBack
	return true
}

// without takes texts out of q, and reports whether one was in it.
func (q *Quoted) without(texts []string) (changed bool) {
	for _, t := range texts {
		if t != "" && strings.Contains(q.Text, t) {
			q.Text, changed = strings.ReplaceAll(q.Text, t, forgottenText), true
		}
	}
	return changed
}

// unsay changes what messages quote, in the rows that hold needle.
func unsay(ctx context.Context, tx *sql.Tx, needle string, change func(*Quoted) bool) error {
	changed := map[int64]string{}
	err := store.Each(ctx, tx, func(row store.Row) error {
		var id int64
		var encoded string
		if err := row.Scan(&id, &encoded); err != nil {
			return err
		}
		all, err := decodeQuoted(encoded)
		if err != nil {
			return err
		}
		touched := false
		for i := range all {
			touched = change(&all[i]) || touched
		}
		if touched {
			changed[id], err = encodeQuoted(all)
		}
		return err
	}, `SELECT id, quoted FROM message WHERE quoted <> '' AND instr(quoted, ?) > 0`, needle)
	if err != nil {
		return fmt.Errorf("forget what was quoted: %w", err)
	}
	for id, quoted := range changed {
		if _, err := tx.ExecContext(ctx, `UPDATE message SET quoted = ? WHERE id = ?`, quoted, id); err != nil {
			return fmt.Errorf("forget what was quoted: %w", err)
		}
	}
	return nil
}

// unquote leaves out what messages quote, but for the person's newest ones: who is
// answered now may refer to it, and what was said since stands in the answers.
func unquote(past []Message) ([]Message, Step) {
	step := Step{Name: QuoteStep, Before: Tokens(past)}
	step.After = step.Before
	first, _ := newestSaid(past)
	out := past
	for i := range past[:first] {
		if len(past[i].Quoted) == 0 {
			continue
		}
		if step.Messages++; step.Messages == 1 {
			out = append([]Message(nil), past...)
		}
		out[i].Quoted = nil
		step.After += out[i].Tokens() - past[i].Tokens()
	}
	return out, step
}

func encodeQuoted(all []Quoted) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("store quotes: %w", err)
	}
	return string(b), nil
}

func decodeQuoted(encoded string) ([]Quoted, error) {
	if encoded == "" {
		return nil, nil
	}
	var all []Quoted
	err := json.Unmarshal([]byte(encoded), &all)
	return all, err
}
