package memory

import (
	"context"
	"fmt"
	"slices"
)

// workingSet is how many entries of a scope a file and a prompt show where the
// others are found when they are needed.
const workingSet = 40

// Recalls reports whether a prompt shows only the working set of the entries, so
// that the others have to be searched for.
func (s *Store) Recalls() bool { return s.recalls }

// Search returns what is found for q in its scopes and nowhere else, the best
// first. Hand edits of the files are taken in by Entries, not here.
func (s *Store) Search(ctx context.Context, q Query) ([]Hit, error) {
	if len(q.Scopes) == 0 {
		return nil, nil
	}
	hits, err := Search(ctx, s.db, s.finder, q)
	if err != nil {
		return nil, err
	}
	// An index says where to look; who may see what it found is decided here.
	hits = slices.DeleteFunc(hits, func(h Hit) bool {
		if h.Turn != nil {
			return !slices.Contains(q.Scopes, h.Turn.Scope)
		}
		return !slices.Contains(q.Scopes, h.Entry.Scope)
	})
	return outdated(ctx, s.db, q, hits)
}

// Neighbours are the ids of up to k active entries of the scope of the active entry id that are
// near to it in meaning, the nearest first. There are none where there are no vectors,
// or none of that entry yet. It makes no vector and asks no model.
func (s *Store) Neighbours(ctx context.Context, id string, k int) ([]string, error) {
	found, err := s.index.Neighbours(ctx, id, k)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return found, nil
}

// WorkingSet picks from entries, as Entries returns them, those that a prompt
// shows whatever is asked: the lines of the files. Without an index it is all of them.
func (s *Store) WorkingSet(entries []Entry) []Entry {
	if !s.recalls {
		return entries
	}
	var set []Entry // few of many: entries are not copied
	shown := map[Scope]map[string]bool{}
	for i := range entries {
		e := &entries[i]
		lines, known := shown[e.Scope]
		if !known {
			if v, err := s.view(e.Scope); err == nil {
				v.mu.Lock()
				lines = v.shows
				v.mu.Unlock()
			}
			shown[e.Scope] = lines
		}
		if lines[e.ID] {
			set = append(set, *e)
		}
	}
	return set
}

// Hear keeps a message of a conversation so that Search finds it again. The same
// event in the same scope is one message, however often it is heard; one that was
// taken back stays away.
func (s *Store) Hear(ctx context.Context, t Turn) error {
	if err := t.Scope.Check(); err != nil {
		return err
	}
	return s.index.Hear(ctx, t)
}

// HeardUpTo is the highest Seq of the messages of a conversation that were heard,
// in any scope; 0 = none.
func (s *Store) HeardUpTo(ctx context.Context, conversation string) (int, error) {
	n, err := s.index.HeardUpTo(ctx, conversation)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return n, nil
}

// Unhear takes the message event back, with the answer to it, wherever they were
// heard, and returns how they may be quoted elsewhere. None is no error.
func (s *Store) Unhear(ctx context.Context, event string) (quotes []string, err error) {
	if event == "" {
		return nil, nil
	}
	_, err = s.write(ctx, "redaction", nil, func(c *change) error {
		texts, err := s.index.TakeBack(ctx, c.tx, event)
		c.purges = c.purges || len(texts) > 0
		for _, text := range texts {
			quotes = append(quotes, Turn{Text: text}.Quotes()...)
		}
		return err
	})
	return quotes, err
}
