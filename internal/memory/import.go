package memory

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/store"
	"reverie/internal/text"
)

// ErrRefTaken says that the Ref of an entry belongs to another text.
var ErrRefTaken = errors.New("stands for another text already; give this one a ref of its own, or forget the other first")

// Import adds all as they are, in one transaction, and returns the result for each. Existing
// entries are left alone; undone ones are added again; forgotten ones are refused with
// ErrForgotten. An entry whose Ref belongs to another text is refused with ErrRefTaken; then none
// is added. batch is the argument for Undo.
func (s *Store) Import(ctx context.Context, all []Entry) (out []Learned, batch string, err error) {
	out = make([]Learned, len(all))
	scopes := make([]Scope, len(all))
	for i, e := range all {
		e.Quote = text.Cut(e.Quote, maxQuote)
		out[i].Entry, scopes[i] = e, e.Scope
	}
	c, err := s.write(ctx, "import", sortedUnique(scopes), func(c *change) error {
		var refused error
		for i := range out {
			if err := c.importEntry(&out[i]); err != nil {
				return err
			}
			if errors.Is(out[i].Refused, ErrRefTaken) {
				refused = ErrRefTaken
			}
		}
		return refused
	})
	if err != nil {
		return out, "", err
	}
	return out, c.batch, nil
}

// importEntry stores l.Entry, unless it exists or was forgotten.
func (c *change) importEntry(l *Learned) error {
	e := l.Entry
	// An entry is identified by its ref, or, without one, by text and position.
	where := `INDEXED BY memory_by_hash WHERE scope = ? AND hash = ? AND conversation = ? AND seq = ?`
	args := []any{e.Scope, text.Hash(e.Text), e.Conversation, e.Seq}
	if e.Ref != "" {
		where, args = `INDEXED BY memory_by_ref WHERE scope = ? AND ref = ? AND ref <> ''`, []any{e.Scope, e.Ref}
	}
	where = `SELECT text FROM memory ` + where + ` AND state <> 'forgotten' AND NOT ` + importUndone + ` LIMIT 1`
	stored, err := store.Column[string](c.ctx, c.tx, where, args...)
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	if len(stored) > 0 {
		if e.Ref != "" && stored[0] != e.Text {
			l.Refused = ErrRefTaken
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

// importUndone selects entries whose last operation undid their import. Entries that a person
// archived are not included.
const importUndone = `(state = 'archived' AND EXISTS (SELECT 1 FROM memory_op AS last
	CROSS JOIN memory_op AS o ON o.seq = last.undoes AND o.op = 'add'
	WHERE last.seq = (SELECT max(seq) FROM memory_op WHERE entry = memory.id)))`
