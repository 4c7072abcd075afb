package memory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/store"
	"reverie/internal/text"
)

// What people say again they seldom say in the same words. When a fact is forgotten,
// the messages that tell it otherwise are not found any more either. They stay in the
// transcript, which is the people's own; an empty row keeps them from being heard again.

// code is how long a number has to be so that it tells what is meant by itself.
const code = 3

// reworded lists the past messages of e's scope that say what e says: all its numbers
// and names, and most of its other words; a code alone is enough.
func (s *Store) reworded(c *change, e Entry) ([]int64, error) {
	mine := tellingOf(&s.index.words, e.Text)
	expression := mine.match()
	if expression == "" {
		return nil, nil
	}
	var scope int64
	if err := c.tx.QueryRowContext(c.ctx, `SELECT coalesce(max(no), 0) FROM index_scope WHERE scope = ?`, e.Scope).Scan(&scope); err != nil || scope == 0 {
		return nil, err
	}
	first, last := rowRange(classTurn, scope)
	var found []int64
	err := store.Each(c.ctx, c.tx, func(row store.Row) error {
		var n int64
		var sender, said string
		if err := row.Scan(&n, &sender, &said); err != nil {
			return err
		}
		if mine.told(s.index.words.FormsIn(text.NameTerms(sender) + " " + said)) {
			found = append(found, n)
		}
		return nil
	}, `SELECT t.n, t.sender, t.text FROM index_fts CROSS JOIN index_doc AS d ON d.row = index_fts.rowid
		CROSS JOIN memory_turn AS t ON t.n = -d.doc WHERE index_fts MATCH ? AND index_fts.rowid BETWEEN ? AND ?`, expression, first, last)
	if err != nil {
		return nil, fmt.Errorf("look for messages that say the same: %w", err)
	}
	return found, nil
}

// telling is what a message has to hold to say the same as a text: each word in one
// of its forms.
type telling struct {
	must  [][]string // numbers and names
	most  [][]string // the other words that tell what it is about
	alone bool       // must suffices
}

func tellingOf(a *text.Analyser, fact string) telling {
	ws := text.Tokens(fact)
	langs := text.Detect(ws)
	var out telling
	for i, w := range ws {
		forms := a.Forms(w, langs)
		number := strings.ContainsFunc(w.Text, unicode.IsDigit)
		switch {
		case len(forms) == 0 || !number && text.IsIdle(w, langs):
		case number, w.Capital && i > 0:
			out.must = append(out.must, forms)
			out.alone = out.alone || number && len(w.Text) >= code
		default:
			out.most = append(out.most, forms)
		}
	}
	return out
}

// match is the expression that finds what may be told; empty = the text says too little.
func (t telling) match() string {
	all := t.must
	if len(all) == 0 {
		if all = t.most; len(all) < 2 {
			return ""
		}
	}
	var groups []string
	for _, forms := range all {
		quoted := make([]string, len(forms))
		for i, f := range forms {
			quoted[i] = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
		}
		groups = append(groups, "("+strings.Join(quoted, " OR ")+")")
	}
	return "{body subject} : (" + strings.Join(groups, " AND ") + ")"
}

// told reports whether forms, those of the words of a message, say what t is of.
func (t telling) told(forms map[string]bool) bool {
	in := func(word []string) bool { return slices.ContainsFunc(word, func(f string) bool { return forms[f] }) }
	for _, word := range t.must {
		if !in(word) {
			return false
		}
	}
	n := 0
	for _, word := range t.most {
		if in(word) {
			n++
		}
	}
	if len(t.must) == 0 {
		return n == len(t.most)
	}
	return t.alone || 2*n > len(t.most)
}
