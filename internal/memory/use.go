package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// mostUsed is how many entries an answer is compared with.
const mostUsed = 20

// CountUse counts the entries of scopes that reply made use of: a number or a rare
// name of it stands there, or two other rare words, and the question asked did not
// bring them. read says whether the model had a text before it; nil = it had
// nothing. Having been found is no use.
func (s *Store) CountUse(ctx context.Context, scopes []Scope, asked, reply string, read func(text string) bool) error {
	if read == nil || strings.TrimSpace(reply) == "" {
		return nil
	}
	hits, err := s.index.Search(ctx, Query{Text: reply, Scopes: scopes, K: mostUsed})
	if err != nil || len(hits) == 0 {
		return err
	}
	numbers, known, err := s.index.scopes(ctx, scopes)
	if err != nil {
		return err
	}
	words := &s.index.words
	said, given := words.FormsIn(reply), words.FormsIn(asked)
	for _, h := range hits {
		if !read(h.Entry.Text) {
			continue
		}
		terms := ask(words, Query{Text: h.Entry.Text}).terms
		if err := s.index.frequencies(ctx, numbers, terms); err != nil {
			return fmt.Errorf("count what was used: %w", err)
		}
		if !uses(words.NamesIn(h.Entry.Text), terms, known.docs, said, given) {
			continue
		}
		// No operation of the journal: it says how often, not what.
		if _, err := s.db.ExecContext(ctx, `UPDATE memory SET hits = hits + 1, last_hit = ? WHERE id = ?`, s.now().UnixMilli(), h.Entry.ID); err != nil {
			return fmt.Errorf("count what was used: %w", err)
		}
	}
	return nil
}

// uses reports whether what was said, beyond what was given, has enough of an
// entry's terms, of which some are names. A term is rare if few of the documents have it.
func uses(names map[string]bool, terms []term, docs int, said, given map[string]bool) bool {
	rare := 0
	for _, t := range terms {
		in := func(forms map[string]bool) bool {
			return slices.ContainsFunc(t.forms, func(f string) bool { return forms[f] })
		}
		if !in(said) || in(given) || t.df > max(3, docs/20) {
			continue
		}
		rare++
		if rare >= 2 || in(names) || strings.ContainsFunc(t.forms[0], unicode.IsDigit) {
			return true
		}
	}
	return false
}
