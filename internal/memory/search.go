package memory

import (
	"context"
	"slices"
	"time"

	"reverie/internal/store"
	"reverie/internal/text"
)

// workingSetSize is how many entries of a scope files and prompts show. This limit applies when the
// others can be searched for.
const workingSetSize = 40

// UsesWorkingSet reports whether prompts show only the working set. Then other entries have to be
// searched for.
func (s *Store) UsesWorkingSet() bool { return s.partial }

// Search returns the hits for q in its scopes, the best first. It does not read hand edits of the
// files; Entries does.
func (s *Store) Search(ctx context.Context, q Query) ([]Hit, error) {
	if len(q.Scopes) == 0 {
		return nil, nil
	}
	hits, err := Search(ctx, s.db, s.find, q)
	if err != nil {
		return nil, err
	}
	// Scopes are enforced here, whatever the index returns.
	hits = slices.DeleteFunc(hits, func(h Hit) bool {
		if h.Turn != nil {
			return !slices.Contains(q.Scopes, h.Turn.Scope)
		}
		return !slices.Contains(q.Scopes, h.Entry.Scope)
	})
	hits, err = dropOutdated(ctx, s.db, q, hits)
	if err != nil || s.rerank == nil || q.Wishes {
		return hits, err
	}
	if err := rerank(ctx, s.rerank, q.Text, hits[:min(len(hits), maxReranked)]); err != nil && ctx.Err() == nil {
		s.log.Warn("the reranking model failed; what was found is sorted without it", "err", err)
	}
	return hits, nil
}

// A reranking model reads each hit, and a person waits. Longer texts than a small model reads are cut.
const (
	maxReranked      = 24
	maxRerankedRunes = 1000
	rerankPatience   = 3 * time.Second
)

// rerank sorts hits by a reranking model, see Config.Rerank. If it fails, they stay as they are.
func rerank(ctx context.Context, model func(context.Context, string, []string) ([]int, error), question string, hits []Hit) error {
	if len(hits) < 2 {
		return nil
	}
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = text.Clip(h.Text(), maxRerankedRunes)
	}
	ctx, cancel := context.WithTimeout(ctx, rerankPatience)
	defer cancel()
	order, err := model(ctx, text.Clip(question, maxRerankedRunes), texts)
	if err != nil {
		return err
	}
	was := slices.Clone(hits)
	for i, k := range order {
		hits[i] = was[k]
	}
	return nil
}

// Neighbours returns the ids of up to k entries near the entry id in meaning. All are active and of
// the same scope; the nearest is first. It returns none without vectors, and computes none.
func (s *Store) Neighbours(ctx context.Context, id string, k int) ([]string, error) {
	found, err := s.index.Neighbours(ctx, id, k)
	return found, store.Wrap(err, "memory")
}

// IndexTurns stores messages of a conversation, so that Search finds them: all or, with an error, none. An
// event is stored once per scope; a redacted one is not stored again.
func (s *Store) IndexTurns(ctx context.Context, turns ...Turn) error {
	for _, t := range turns {
		if err := t.Scope.Check(); err != nil {
			return err
		}
	}
	return s.index.IndexTurns(ctx, turns...)
}

// LastTurnSeq is the highest Seq of the indexed messages of a conversation, in any scope; 0 = none.
func (s *Store) LastTurnSeq(ctx context.Context, conversation string) (int, error) {
	n, err := s.index.LastTurnSeq(ctx, conversation)
	return n, store.Wrap(err, "read memory")
}

// RedactTurn removes the message event and the answer to it from the index. It does so in every
// scope. It returns the forms in which they may be quoted elsewhere. An unknown event is not an
// error.
func (s *Store) RedactTurn(ctx context.Context, event string) (quotes []string, err error) {
	if event == "" {
		return nil, nil
	}
	_, err = s.write(ctx, "redaction", nil, func(c *change) error {
		texts, err := s.index.RedactTurn(ctx, c.tx, event)
		c.purges = c.purges || len(texts) > 0
		for _, text := range texts {
			quotes = append(quotes, Turn{Text: text}.Quotes()...)
		}
		return err
	})
	return quotes, err
}
