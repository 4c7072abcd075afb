package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"reverie/internal/store"
)

// importBatch is how many lines one transaction stores. Others wait no longer than that takes.
const importBatch = 500

// importPause is the time between two batches. Who waits for the write lock in another
// process asks for it every tenth of a second.
const importPause = 110 * time.Millisecond

// Import adds the lines of r, which people know as name. It reads r twice: the first
// time it only looks, and if a line is bad nothing is imported (BadLines). Then it adds
// them in batches of lines, each in one transaction; Undo takes back all of them together.
// Lines that are there already are left alone, so what was
// cut off is completed by importing the file again; that is a batch of its own.
// What was taken back (Undo) is added again; what was put away is there, and what was
// to be forgotten is left out.
func (m *Importer) Import(ctx context.Context, name string, r io.ReadSeeker) (ImportResult, error) {
	run := &importing{Importer: m, ctx: ctx, scopes: map[Scope]bool{}, ignored: map[string]bool{}, refs: map[string]string{}, batch: newBatch(), size: importBatch}
	if m.atOnce > 0 {
		run.size = m.atOnce
	}
	if err := m.each(name, r, run.ignored, run.look); err != nil {
		return ImportResult{}, run.explain(name, err)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", name, err)
	}
	err := run.addAll(name, r)
	result := ImportResult{Lines: run.lines, Added: run.added, Known: run.known, Forgotten: run.forgotten, Ignored: slices.Sorted(maps.Keys(run.ignored))}
	if run.added > 0 {
		result.Batch = run.batch
	}
	return result, run.explain(name, err)
}

// importing is one import under way.
type importing struct {
	*Importer
	ctx     context.Context
	scopes  map[Scope]bool    // that the file names
	refs    map[string]string // scope and ref → hash of the text, of the first reading
	ignored map[string]bool
	batch   string

	lines, read, added, known, forgotten int

	size int // lines of one transaction
	part []Entry
}

// explain says how far the import came.
func (i *importing) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	if failed := (stop{}); errors.As(err, &failed) {
		err = failed.error
	}
	if i.ctx.Err() != nil { // the database says it in many ways
		err = i.ctx.Err()
	}
	if i.added == 0 {
		if bad := (BadLines)(nil); errors.As(err, &bad) {
			return err
		}
		return fmt.Errorf("import %s: nothing was imported: %w", name, err)
	}
	return fmt.Errorf("import %s: it was cut off after %d memories, which stay; import the file again to complete it, or take them back with `bot memory undo %s`: %w",
		name, i.added, i.batch, err)
}

// look is the first reading: a ref must stand for one text.
func (i *importing) look(e Entry, _ int) error {
	i.lines++
	i.scopes[e.Scope] = true
	if e.Ref == "" {
		return nil
	}
	if _, err := isStored(i.ctx, i.Store.db, e); err != nil {
		return err
	}
	key, text := string(e.Scope)+"\x00"+e.Ref, sum([]byte(e.Text))
	if old, there := i.refs[key]; there && old != text {
		return otherText(e)
	}
	i.refs[key] = text
	return nil
}

// addAll is the second. Hand edits come first, and the files last.
func (i *importing) addAll(name string, r io.Reader) error {
	scopes := slices.Sorted(maps.Keys(i.scopes))
	for _, scope := range scopes {
		if err := i.Store.mend(i.ctx, scope); err != nil {
			return err
		}
	}
	err := i.addLines(name, r)
	if i.added == 0 {
		return err
	}
	for _, scope := range scopes {
		if err := i.Store.mend(i.ctx, scope); err != nil {
			i.Store.log.Error("memory is stored, but its file could not be written; it is tried again", "file", i.Store.File(scope), "err", err)
		}
	}
	return err
}

// addLines stores the lines of r, batch by batch.
func (i *importing) addLines(name string, r io.Reader) error {
	err := i.each(name, r, nil, func(e Entry, _ int) error {
		i.read++
		if i.part = append(i.part, e); len(i.part) < i.size && i.read < i.lines {
			return nil
		}
		if err := i.flush(); err != nil {
			return stop{err}
		}
		return nil
	})
	return err
}

// flush stores the batch and lets others write.
func (i *importing) flush() error {
	if err := i.store(); err != nil {
		return err
	}
	i.part = i.part[:0]
	if i.Progress != nil {
		i.Progress(i.read, i.lines)
	}
	if i.atOnce > 0 || i.read >= i.lines {
		return i.ctx.Err()
	}
	return rest(i.ctx, importPause)
}

func (i *importing) store() error {
	var added, known, forgotten int
	err := i.Store.commitLocked(i.ctx, "import", func(c *change) error {
		c.batch = i.batch
		for _, e := range i.part {
			there, err := isStored(c.ctx, c.tx, e)
			if err != nil {
				return err
			}
			if there {
				known++
				continue
			}
			gone, err := c.isForgotten(e.Scope, e.Text)
			if err != nil {
				return err
			}
			if gone {
				forgotten++
				continue
			}
			if _, err := c.add(e); err != nil {
				return err
			}
			added++
		}
		return nil
	})
	if err != nil {
		return err
	}
	i.added, i.known, i.forgotten = i.added+added, i.known+known, i.forgotten+forgotten
	return nil
}

// isStored reports whether e is stored already: its ref, or, without one, its text at the
// same place. The same ref with another text is an error.
func isStored(ctx context.Context, db store.DBTX, e Entry) (bool, error) {
	query, args := storedText, []any{e.Scope, textHash(e.Text), e.Conversation, e.Seq}
	if e.Ref != "" {
		query, args = storedRef, []any{e.Scope, e.Ref}
	}
	var text string
	err := db.QueryRowContext(ctx, query, args...).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, stop{fmt.Errorf("read memory: %w", err)}
	case e.Ref != "" && text != e.Text:
		return true, otherText(e)
	}
	return true, nil
}

func otherText(e Entry) error {
	return fmt.Errorf("ref %q stands for another text already; give this one a ref of its own, or forget the other first", e.Ref)
}

// What was undone may come again.
const (
	storedText = `SELECT text FROM memory INDEXED BY memory_by_hash WHERE scope = ? AND hash = ? AND conversation = ? AND seq = ? AND state <> 'forgotten' AND NOT ` + takenBack + ` LIMIT 1`
	storedRef  = `SELECT text FROM memory INDEXED BY memory_by_ref WHERE scope = ? AND ref = ? AND ref <> '' AND state <> 'forgotten' AND NOT ` + takenBack + ` LIMIT 1`
)

// takenBack is true of an entry whose coming was taken back: of what was done to it, the
// last takes back (what took back …) its coming. What somebody put away is not undone.
const takenBack = `(state = 'archived' AND EXISTS (
	WITH RECURSIVE back (op, undoes) AS (
		SELECT op, undoes FROM memory_op WHERE seq = (SELECT max(seq) FROM memory_op WHERE entry = memory.id) AND undoes <> 0
		UNION ALL SELECT o.op, o.undoes FROM back CROSS JOIN memory_op AS o ON o.seq = back.undoes WHERE back.undoes <> 0)
	SELECT 1 FROM back WHERE op = 'add'))`
