package memory

import (
	"context"
	"strings"
	"unicode"

	"reverie/internal/text"
)

// Two texts say nearly the same if they share most of their words, and all that
// a small difference would make another fact: numbers, names, and whether it is so
// or not so. Code 4711 is not code 4712, and Anna is not Ben.

// likeShare is how much of the words of both together both must have.
const likeShare = .6

// likely lists the entries of e's scope that say nearly the same, the likeliest
// first. It never fails: a link is a help, and a write is a promise.
func (s *Store) likely(ctx context.Context, e Entry) []string {
	hits, err := s.index.Search(ctx, Query{Text: e.Text, Scopes: []Scope{e.Scope}, K: 5})
	if err != nil {
		s.log.Warn("entries that say nearly the same are not looked for", "err", err)
		return nil
	}
	mine := s.index.words.essence(e.Text)
	var ids []string
	for _, h := range hits {
		if h.Entry.Conversation == e.Conversation && mine.like(s.index.words.essence(h.Entry.Text)) {
			ids = append(ids, h.Entry.ID)
		}
	}
	return ids
}

// stillActive is the first of ids that still counts in scope.
func stillActive(c *change, scope Scope, ids []string) (string, error) {
	for _, id := range ids {
		e, err := entryByID(c.ctx, c.tx, id)
		if err != nil {
			return "", err
		}
		if e.State == Active && e.Scope == scope {
			return id, nil
		}
	}
	return "", nil
}

// essence is what a text is compared by.
type essence struct {
	words     map[string]bool // all of them, folded
	terms     map[string]bool // the stems of those that say something
	protected []string        // numbers, names and negations
}

func (a *analyser) essence(text string) essence {
	ws := words(text)
	langs := detect(ws)
	e := essence{words: map[string]bool{}, terms: map[string]bool{}}
	for i, w := range ws {
		e.words[w.text] = true
		small := isStop(w, langs)
		switch {
		case strings.ContainsFunc(w.text, unicode.IsDigit), w.capital && (i > 0 || !small), negations[w.text], strings.HasSuffix(w.text, "n't"):
			e.protected = append(e.protected, w.text)
		}
		if forms := a.forms(w, langs); !small && len(forms) > 0 {
			e.terms[forms[0]] = true
		}
	}
	return e
}

var negations = text.Set("negation")

func (e essence) like(o essence) bool {
	for _, side := range [][2]essence{{e, o}, {o, e}} {
		for _, p := range side[0].protected {
			if !side[1].words[p] {
				return false
			}
		}
	}
	both := 0
	for t := range e.terms {
		if o.terms[t] {
			both++
		}
	}
	all := len(e.terms) + len(o.terms) - both
	return both >= 2 && float64(both) >= likeShare*float64(all)
}
