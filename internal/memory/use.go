package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/text"
)

// maxUseCandidates is how many entries CountUse compares with a reply.
const maxUseCandidates = 20

// CountUse counts the entries of scopes that reply used. read reports whether the model had a text
// before it; nil = it had none. An entry that was only found is not counted.
func (s *Store) CountUse(ctx context.Context, scopes []Scope, asked, reply string, read func(text string) bool) error {
	if read == nil || strings.TrimSpace(reply) == "" {
		return nil
	}
	hits, err := Search(ctx, s.db, s.index.FTS.Search, Query{Text: reply, Scopes: scopes, K: maxUseCandidates})
	if err != nil {
		return err
	}
	said, given := text.FormsIn(reply), text.FormsIn(asked)
	for _, h := range hits {
		if !read(h.Entry.Text) || !uses(h.Entry.Text, said, given) {
			continue
		}
		// Usage counts are not journalled.
		count := `UPDATE memory SET hits = hits + 1, last_hit = ? WHERE id = ?`
		if _, err := s.db.ExecContext(ctx, count, time.Now().UnixMilli(), h.Entry.ID); err != nil {
			return fmt.Errorf("count what was used: %w", err)
		}
	}
	return nil
}

// uses reports whether a reply uses words of entry that the question lacks. It needs a number, a
// name or two other words. said and given are the word forms of reply and question.
func uses(entry string, said, given map[string]bool) bool {
	words := 0
	for _, w := range text.WordsOf(entry) {
		in := func(forms map[string]bool) bool {
			return slices.ContainsFunc(w.Stems, func(f string) bool { return forms[f] })
		}
		if w.Stop || !in(said) || in(given) {
			continue
		}
		if words++; w.Name || words == 2 {
			return true
		}
	}
	return false
}
