package memory

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/text"
)

// used says of texts in scopes which reply made use of: a number or a rare name of one stands
// there, or two other rare words, and the question asked did not bring them.
func (f *FTS) used(ctx context.Context, scopes []Scope, asked, reply string, texts []string) ([]bool, error) {
	numbers, known, err := f.scopes(ctx, scopes)
	if err != nil {
		return nil, err
	}
	said, given := text.FormsIn(reply), text.FormsIn(asked)
	used := make([]bool, len(texts))
	for i, t := range texts {
		terms := ask(Query{Text: t}).terms
		if err := f.frequencies(ctx, numbers, terms); err != nil {
			return nil, err
		}
		used[i] = uses(text.NamesIn(t), terms, known.docs, said, given)
	}
	return used, nil
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
