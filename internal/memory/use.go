package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return !read(h.Entry.Text) })
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = h.Entry.Text
	}
	used, err := s.index.used(ctx, scopes, asked, reply, texts)
	if err != nil {
		return fmt.Errorf("count what was used: %w", err)
	}
	for i, h := range hits {
		if !used[i] {
			continue
		}
		// No operation of the journal: it says how often, not what.
		if _, err := s.db.ExecContext(ctx, `UPDATE memory SET hits = hits + 1, last_hit = ? WHERE id = ?`, s.now().UnixMilli(), h.Entry.ID); err != nil {
			return fmt.Errorf("count what was used: %w", err)
		}
	}
	return nil
}
