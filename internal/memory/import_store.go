package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"reverie/internal/store"
	"reverie/internal/text"
)

// Import adds the lines of data, which people know as name, in one transaction. If a line is bad
// nothing is imported. Lines that are there already are left alone. What was taken
// back (Undo) is added again; what was put away is there, and what was to be forgotten is left out.
func (m *Importer) Import(ctx context.Context, name string, data []byte) (ImportResult, error) {
	all, bad := m.parse(name, data)
	if len(bad) > 0 {
		return ImportResult{}, badLines(bad)
	}
	r := ImportResult{Lines: len(all)}
	scopes := make([]Scope, len(all))
	for i, e := range all {
		scopes[i] = e.Scope
	}
	c, err := m.Store.write(ctx, "import", sorted(scopes), func(c *change) error {
		for _, e := range all {
			if err := c.take(e.Entry, &r); errors.Is(err, errOtherText) {
				bad = append(bad, fmt.Errorf("%s:%d: ref %q %w", name, e.line, e.Ref, err))
			} else if err != nil {
				return err
			}
		}
		return errors.Join(bad...)
	})
	switch {
	case len(bad) > 0:
		return ImportResult{}, badLines(bad)
	case err != nil:
		return ImportResult{}, fmt.Errorf("import %s: nothing was imported: %w", name, cmp.Or(ctx.Err(), err))
	case r.Added > 0:
		r.Batch = c.batch
	}
	return r, nil
}

// errOtherText says what is wrong with a ref.
var errOtherText = errors.New("stands for another text already; give this one a ref of its own, or forget the other first")

// take adds an entry of a file, unless it is there or was to be forgotten.
func (c *change) take(e Entry, r *ImportResult) error {
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
	gone, err := c.isForgotten(e.Scope, e.Text)
	switch {
	case err != nil:
		return err
	case len(stored) > 0 && e.Ref != "" && stored[0] != e.Text:
		return errOtherText
	case len(stored) > 0:
		r.Known++
		return nil
	case gone:
		r.Forgotten++
		return nil
	}
	r.Added++
	_, err = c.add(e)
	return err
}

// takenBack is true of an entry whose coming was taken back last. What somebody put away is not undone.
const takenBack = `(state = 'archived' AND EXISTS (SELECT 1 FROM memory_op AS last
	CROSS JOIN memory_op AS o ON o.seq = last.undoes AND o.op = 'add'
	WHERE last.seq = (SELECT max(seq) FROM memory_op WHERE entry = memory.id)))`
