package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// Import adds the lines of data, which people know as name. If a line is bad nothing is imported
// (BadLines). It adds them in batches of lines, each in one transaction; Undo takes back all of
// them together. Lines that are there already are left alone, so what was cut off is completed by
// importing the file again; that is a batch of its own. What was taken back (Undo) is added again;
// what was put away is there, and what was to be forgotten is left out.
func (m *Importer) Import(ctx context.Context, name string, data []byte) (ImportResult, error) {
	ignored := map[string]bool{}
	all, bad := m.parse(name, data, ignored)
	for _, e := range all {
		if text, there, err := stored(ctx, m.Store.db, e.Entry); err != nil {
			return ImportResult{}, fmt.Errorf("import %s: nothing was imported: %w", name, err)
		} else if there && e.Ref != "" && text != e.Text {
			bad = append(bad, fmt.Errorf("%s:%d: %w", name, e.line, otherText(e.Entry)))
		}
	}
	if len(bad) > 0 {
		return ImportResult{}, bad
	}
	r := ImportResult{Lines: len(all), Ignored: slices.Sorted(maps.Keys(ignored))}
	batch := newBatch()
	err := m.addAll(ctx, batch, all, &r)
	if r.Added > 0 {
		r.Batch = batch
	}
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil: // the database says it in many ways
		err = ctx.Err()
	}
	if r.Added == 0 {
		return r, fmt.Errorf("import %s: nothing was imported: %w", name, err)
	}
	return r, fmt.Errorf("import %s: it was cut off after %d memories, which stay; import the file again to complete it, or take them back with `bot memory undo %s`: %w",
		name, r.Added, batch, err)
}

// addAll stores all. Hand edits come first, and the files last.
func (m *Importer) addAll(ctx context.Context, batch string, all []imported, r *ImportResult) error {
	scopes := map[Scope]bool{}
	for _, e := range all {
		scopes[e.Scope] = true
	}
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		if err := m.Store.mend(ctx, scope); err != nil {
			return err
		}
	}
	err := m.addBatches(ctx, batch, all, r)
	if r.Added == 0 {
		return err
	}
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		if err := m.Store.mend(ctx, scope); err != nil {
			m.Store.log.Error("memory is stored, but its file could not be written; it is tried again", "file", m.Store.File(scope), "err", err)
		}
	}
	return err
}

// addBatches stores all, a transaction at a time, and lets others write in between.
func (m *Importer) addBatches(ctx context.Context, batch string, all []imported, r *ImportResult) error {
	done := 0
	for part := range slices.Chunk(all, cmp.Or(m.atOnce, importBatch)) {
		if done > 0 && m.atOnce == 0 {
			if err := rest(ctx, importPause); err != nil {
				return err
			}
		}
		so := *r
		err := m.Store.commitLocked(ctx, "import", func(c *change) error {
			so, c.batch = *r, batch
			for _, e := range part {
				if err := c.take(e.Entry, &so); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		*r, done = so, done+len(part)
		if m.Progress != nil {
			m.Progress(done, len(all))
		}
	}
	return nil
}

// take adds an entry of a file, unless it is there or was to be forgotten.
func (c *change) take(e Entry, r *ImportResult) error {
	_, there, err := stored(c.ctx, c.tx, e)
	if err != nil {
		return err
	}
	gone, err := c.isForgotten(e.Scope, e.Text)
	switch {
	case err != nil:
		return err
	case there:
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

// stored looks for e: by its ref, or, without one, by its text at the same place.
func stored(ctx context.Context, db store.DBTX, e Entry) (text string, there bool, err error) {
	query, args := storedText, []any{e.Scope, textHash(e.Text), e.Conversation, e.Seq}
	if e.Ref != "" {
		query, args = storedRef, []any{e.Scope, e.Ref}
	}
	err = db.QueryRowContext(ctx, query, args...).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("read memory: %w", err)
	}
	return text, true, nil
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
