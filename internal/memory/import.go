package memory

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/store"
	"reverie/internal/text"
)

// ErrOtherText says what is wrong with the Ref of an entry.
var ErrOtherText = errors.New("stands for another text already; give this one a ref of its own, or forget the other first")

// Import adds all as they are, in one transaction, and says what became of each. What is there already
// is left alone; what was undone is added again, and what was to be forgotten is left out. One whose Ref
// stands for another text is refused with ErrOtherText, and then none is added. batch is what Undo takes.
func (s *Store) Import(ctx context.Context, all []Entry) (out []Learned, batch string, err error) {
	out = make([]Learned, len(all))
	scopes := make([]Scope, len(all))
	for i, e := range all {
		e.Quote = text.Cut(e.Quote, maxQuote)
		out[i].Entry, scopes[i] = e, e.Scope
	}
	c, err := s.write(ctx, "import", sorted(scopes), func(c *change) error {
		var refused error
		for i := range out {
			if err := c.take(&out[i]); err != nil {
				return err
			}
			if errors.Is(out[i].Refused, ErrOtherText) {
				refused = ErrOtherText
			}
		}
		return refused
	})
	if err != nil {
		return out, "", err
	}
	return out, c.batch, nil
}

// take stores l.Entry, unless it is there or was to be forgotten.
func (c *change) take(l *Learned) error {
	e := l.Entry
	// By its ref, or, without one, by its text at the same place. What was undone may come again.
	where := `INDEXED BY memory_by_hash WHERE scope = ? AND hash = ? AND conversation = ? AND seq = ?`
	args := []any{e.Scope, text.Hash(e.Text), e.Conversation, e.Seq}
	if e.Ref != "" {
		where, args = `INDEXED BY memory_by_ref WHERE scope = ? AND ref = ? AND ref <> ''`, []any{e.Scope, e.Ref}
	}
	where = `SELECT text FROM memory ` + where + ` AND state <> 'forgotten' AND NOT ` + takenBack + ` LIMIT 1`
	stored, err := store.Column[string](c.ctx, c.tx, where, args...)
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	if len(stored) > 0 {
		if e.Ref != "" && stored[0] != e.Text {
			l.Refused = ErrOtherText
		}
		return nil
	}
	gone, err := c.isForgotten(e.Scope, e.Text)
	if err != nil {
		return err
	}
	if gone {
		l.Refused = ErrForgotten
		return nil
	}
	l.Entry, err = c.add(e)
	l.Added = err == nil
	return err
}

// takenBack is true of an entry whose coming was taken back last. What somebody put away is not undone.
const takenBack = `(state = 'archived' AND EXISTS (SELECT 1 FROM memory_op AS last
	CROSS JOIN memory_op AS o ON o.seq = last.undoes AND o.op = 'add'
	WHERE last.seq = (SELECT max(seq) FROM memory_op WHERE entry = memory.id)))`
