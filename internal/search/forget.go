package search

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// People seldom repeat a fact in the same words. When a fact is forgotten, messages that reword
// it leave the index, too. They stay in the transcript, which belongs to the people; an empty row
// keeps them from being indexed again.

// minCodeLength is the length from which a number identifies a fact by itself.
const minCodeLength = 3

// keyTerms are terms of a text. A message must contain them to say the same. Each term is a list of
// word forms.
type keyTerms struct {
	required        [][]string // numbers and names
	majority        [][]string // other content words; most of them must occur
	requiredSuffice bool       // majority is ignored
}

func keyTermsOf(fact string) keyTerms {
	ws := text.Tokens(fact)
	langs := text.Detect(ws)
	var out keyTerms
	for i, w := range ws {
		forms := text.Forms(w, langs)
		number := strings.ContainsFunc(w.Text, unicode.IsDigit)
		switch {
		case len(forms) == 0 || !number && text.IsSmallTalk(w, langs):
		case number, w.Capital && i > 0:
			out.required = append(out.required, forms)
			out.requiredSuffice = out.requiredSuffice || number && len(w.Text) >= minCodeLength
		default:
			out.majority = append(out.majority, forms)
		}
	}
	return out
}

// ftsQuery is the FTS5 expression for candidates; empty = the text has too few terms.
func (t keyTerms) ftsQuery() string {
	all := t.required
	if len(all) == 0 {
		if all = t.majority; len(all) < 2 {
			return ""
		}
	}
	groups := store.Map(all, func(forms []string) string { return "(" + ftsAnyOf([]term{{forms: forms}}) + ")" })
	return "{body subject} : (" + strings.Join(groups, " AND ") + ")"
}

// matchedBy reports whether a message with these word forms says the same as t's text.
func (t keyTerms) matchedBy(forms map[string]bool) bool {
	in := func(word []string) bool { return slices.ContainsFunc(word, func(f string) bool { return forms[f] }) }
	for _, word := range t.required {
		if !in(word) {
			return false
		}
	}
	n := 0
	for _, word := range t.majority {
		if in(word) {
			n++
		}
	}
	if len(t.required) == 0 {
		return n == len(t.majority)
	}
	return t.requiredSuffice || 2*n > len(t.majority)
}

// LastTurnSeq is the highest Seq of the indexed messages of a conversation, in any scope; 0 = none.
func (f *FTS) LastTurnSeq(ctx context.Context, conversation string) (n int, err error) {
	return store.Value[int](ctx, f.db, `SELECT coalesce(max(seq), 0) FROM past_message WHERE conversation = ?`, conversation)
}

// IsRedacted reports whether the message event of scope was redacted.
func (f *FTS) IsRedacted(ctx context.Context, scope trust.Readers, event string) (is bool, err error) {
	query := `SELECT EXISTS (SELECT 1 FROM past_message WHERE scope = ? AND event = ? AND event <> '' AND text = '')`
	return store.Value[bool](ctx, f.db, query, scope, event)
}

// ClearRedaction deletes the mark of a redacted message, so that event can be indexed again.
func (f *FTS) ClearRedaction(ctx context.Context, tx *sql.Tx, event string) error {
	// Empty rows are not indexed.
	return store.Exec(ctx, tx, `DELETE FROM past_message WHERE event = ? AND event <> '' AND text = ''`, event)
}

// RedactTurn empties the message event, in every scope, and the answers to it. It returns their
// texts.
func (f *FTS) RedactTurn(ctx context.Context, tx *sql.Tx, event string) (texts []string, err error) {
	return f.redact(ctx, tx, `event = ? AND event <> ''`, event)
}

// RedactFact empties the messages of scope that state a forgotten fact: the message event it was
// learned from, those that contain one of statements, and those that reword the first statement. It
// returns their texts and the number of reworded ones.
func (f *FTS) RedactFact(
	ctx context.Context, tx *sql.Tx, scope trust.Readers, event string, statements ...string,
) (texts []string, reworded int, err error) {
	redact := func(condition string, args ...any) error {
		some, err := f.redact(ctx, tx, condition, args...)
		texts = append(texts, some...)
		return err
	}
	if event != "" {
		if err := redact(`event = ? AND event <> ''`, event); err != nil {
			return nil, 0, err
		}
	}
	for _, words := range statements {
		if strings.TrimSpace(words) == "" {
			continue
		}
		if err := redact(`scope = ? AND instr(text, ?) > 0`, scope, words); err != nil {
			return nil, 0, err
		}
	}
	others, err := f.findReworded(ctx, tx, scope, statements[0])
	if err == nil {
		err = redact(`n IN (SELECT value FROM json_each(?))`, store.Array(others))
	}
	return texts, len(others), err
}

// redact empties the messages selected by condition, and the answers to those of people. Their rows
// stay, so that they are not indexed again.
func (f *FTS) redact(ctx context.Context, tx *sql.Tx, condition string, args ...any) (texts []string, err error) {
	var numbers []int64
	err = store.Each(ctx, tx, func(row store.Row) error {
		var n int64
		var text string
		err := row.Scan(&n, &text)
		numbers, texts = append(numbers, n), append(texts, text)
		return err
	}, `SELECT n, text FROM past_message WHERE text <> '' AND `+condition+`
		UNION SELECT a.n, a.text FROM past_message AS q JOIN past_message AS a ON a.n = (SELECT n FROM past_message AS x
			WHERE x.scope = q.scope AND x.conversation = q.conversation AND q.conversation <> '' AND x.seq > q.seq ORDER BY x.seq LIMIT 1)
		WHERE q.text <> '' AND q.sender <> '' AND a.sender = '' AND a.text <> ''
			AND q.n IN (SELECT n FROM past_message WHERE `+condition+`)`, slices.Concat(args, args)...)
	if err != nil {
		return nil, fmt.Errorf("redact a message: %w", err)
	}
	for _, n := range numbers {
		if _, err := tx.ExecContext(ctx, `UPDATE past_message SET text = '', sender = '' WHERE n = ?`, n); err != nil {
			return nil, fmt.Errorf("redact a message: %w", err)
		}
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	return texts, f.updateTurns(ctx, tx, numbers...)
}

// findReworded lists the past messages of scope that say the same as fact: all its numbers and
// names, and most of its other content words. A long number alone is enough.
func (f *FTS) findReworded(ctx context.Context, tx *sql.Tx, scope trust.Readers, fact string) ([]int64, error) {
	terms := keyTermsOf(fact)
	expression := terms.ftsQuery()
	if expression == "" {
		return nil, nil
	}
	no, err := store.Value[int64](ctx, tx, `SELECT no FROM index_scope WHERE scope = ?`, scope)
	if err != nil || no == 0 {
		return nil, err
	}
	var found []int64
	first, last := rowRange(no, classTurn, classAnswer)
	err = store.Each(ctx, tx, func(row store.Row) error {
		var n int64
		var sender, said string
		err := row.Scan(&n, &sender, &said)
		if terms.matchedBy(text.FormsIn(text.NameTerms(sender) + " " + said)) {
			found = append(found, n)
		}
		return err
	}, `SELECT t.n, t.sender, t.text FROM index_fts CROSS JOIN index_doc AS d ON d.row = index_fts.rowid
		CROSS JOIN past_message AS t ON t.n = -d.doc WHERE index_fts MATCH ? AND index_fts.rowid BETWEEN ? AND ?`,
		expression, first, last)
	return found, store.Wrap(err, "look for messages that say the same")
}
