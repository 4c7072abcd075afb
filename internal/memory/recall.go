package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/search/qdrant"
	"reverie/internal/search/vector"
	"reverie/internal/store"
)

// Backend says how entries come into prompts. The zero value is FlatFile.
type Backend string

// The backends.
const (
	FlatFile    Backend = "flat_file"    // all of them stand in every prompt; searches go by words
	FTS5        Backend = "fts5"         // found by their words
	LocalVector Backend = "local_vector" // found by their meaning too
	Qdrant      Backend = "qdrant"       // likewise, on a server of its own
)

// workingSet is how many entries of a scope a file and a prompt show where the
// others are found when they are needed.
const workingSet = 40

// choose sets up how s finds what it is asked for.
func (s *Store) choose(b Backend, v *vector.Vectors, p *qdrant.Points) error {
	s.finder = s.index
	switch b {
	case "", FlatFile:
	case FTS5, LocalVector, Qdrant:
		s.recalls = true
		switch {
		case v == nil:
		case b == LocalVector:
			s.finder, s.vectors = OpenHybrid(s.index, v, nil), v
		case b == Qdrant && p != nil:
			s.finder, s.vectors = OpenHybrid(s.index, v, p), v
		}
		if b == Qdrant {
			s.points = p
		}
		if s.lines == 0 {
			s.lines = workingSet
		}
	default:
		return fmt.Errorf("memory: unknown backend %q; there are flat_file, fts5, local_vector and qdrant", b)
	}
	return nil
}

// Recalls reports whether a prompt shows only the working set of the entries, so
// that the others have to be searched for.
func (s *Store) Recalls() bool { return s.recalls }

// Search returns what is found for q in its scopes and nowhere else, the best
// first. Hand edits of the files are taken in by Entries, not here.
func (s *Store) Search(ctx context.Context, q Query) ([]Hit, error) {
	if len(q.Scopes) == 0 {
		return nil, nil
	}
	hits, err := s.finder.Search(ctx, q)
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
	return s.outdated(ctx, q, hits)
}

// Neighbours are the ids of up to k active entries of the scope of the active entry id that are
// near to it in meaning, the nearest first. There are none where there are no vectors,
// or none of that entry yet. It makes no vector and asks no model.
func (s *Store) Neighbours(ctx context.Context, id string, k int) ([]string, error) {
	found, err := s.finder.Neighbours(ctx, id, k)
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
			if f, err := s.file(e.Scope); err == nil {
				f.mu.Lock()
				lines = f.shows
				f.mu.Unlock()
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
	var n int
	err := s.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM memory_turn WHERE conversation = ?`, conversation).Scan(&n)
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
	err = s.commitLocked(ctx, "redaction", func(c *change) error {
		texts, err := s.silence(c, `event = ?`, event)
		for _, text := range texts {
			quotes = append(quotes, Turn{Text: text}.Quotes()...)
		}
		return err
	})
	return quotes, err
}

// silence empties the messages that the condition holds for, and the answers to
// those that a person wrote. Their rows stay, so that they are not heard again.
func (s *Store) silence(c *change, condition string, args ...any) (texts []string, err error) {
	var numbers []int64
	err = store.Each(c.ctx, c.tx, func(row store.Row) error {
		var n int64
		var text string
		if err := row.Scan(&n, &text); err != nil {
			return err
		}
		numbers, texts = append(numbers, n), append(texts, text)
		return nil
	}, `SELECT n, text FROM memory_turn WHERE text <> '' AND `+condition+`
		UNION SELECT a.n, a.text FROM memory_turn AS q JOIN memory_turn AS a ON a.n = (SELECT n FROM memory_turn AS x
			WHERE x.scope = q.scope AND x.conversation = q.conversation AND q.conversation <> '' AND x.seq > q.seq ORDER BY x.seq LIMIT 1)
		WHERE q.text <> '' AND q.sender <> '' AND a.sender = '' AND a.text <> '' AND q.n IN (SELECT n FROM memory_turn WHERE `+condition+`)`, slices.Concat(args, args)...)
	if err != nil {
		return nil, fmt.Errorf("take a message back: %w", err)
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	c.purges = true
	for _, n := range numbers {
		if _, err := c.tx.ExecContext(c.ctx, `UPDATE memory_turn SET text = '', sender = '' WHERE n = ?`, n); err != nil {
			return nil, fmt.Errorf("take a message back: %w", err)
		}
	}
	return texts, s.index.updateTurns(c.ctx, c.tx, numbers...)
}

// silenceFacts takes back the messages that an entry which is to be forgotten was
// learned from, and those in its scope that repeat it or, as so many of reworded, say
// it in other words. It returns what they said.
func (s *Store) silenceFacts(c *change, gone []Entry) (texts []string, reworded int, err error) {
	silence := func(condition string, args ...any) error {
		some, err := s.silence(c, condition, args...)
		texts = append(texts, some...)
		return err
	}
	for _, e := range gone {
		if e.Event != "" {
			if err := silence(`event = ?`, e.Event); err != nil {
				return nil, 0, err
			}
		}
		for _, words := range []string{e.Text, e.Quote} {
			if strings.TrimSpace(words) == "" {
				continue
			}
			if err := silence(`scope = ? AND instr(text, ?) > 0`, e.Scope, words); err != nil {
				return nil, 0, err
			}
		}
		others, err := s.reworded(c, e)
		if err != nil {
			return nil, 0, err
		}
		if err := silence(`n IN (SELECT value FROM json_each(?))`, store.Array(others)); err != nil {
			return nil, 0, err
		}
		reworded += len(others)
	}
	return texts, reworded, nil
}
