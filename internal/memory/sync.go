package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/memory/file"
	"reverie/internal/memory/lines"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// byFile is the actor of what people do in the files.
const byFile = "file"

// inFiles are the entries as the files show them. It implements file.Entries.
type inFiles struct{ *Store }

// View implements file.Entries.
func (s inFiles) View(ctx context.Context, scope Scope, ids []string) (lines.View, error) {
	v := lines.View{Successor: map[string]string{}, Forgotten: s.forgetting}
	all := `FROM memory WHERE scope = ?1 AND ` + shown
	query, args := `SELECT id, text `+all+` ORDER BY n`, []any{scope}
	if s.lines > 0 {
		// The working set: what is pinned, the half that is of most use, and what was added last.
		query = `WITH used AS MATERIALIZED (SELECT n ` + all + ` AND hits > 0 ORDER BY hits DESC, n DESC LIMIT ?2 - ?2 / 2)
			SELECT id, text ` + all + ` AND (pinned = 1 OR n IN used
				OR n IN (SELECT n ` + all + ` AND n NOT IN used ORDER BY n DESC LIMIT ?2 - (SELECT count(*) FROM used))) ORDER BY n`
		args = append(args, s.lines)
	}
	wanted := map[string]bool{}
	err := store.Each(ctx, s.db, func(row store.Row) error {
		var l lines.Line
		if err := row.Scan(&l.ID, &l.Text); err != nil {
			return err
		}
		v.Want = append(v.Want, l)
		wanted[l.ID] = true
		return nil
	}, query, args...)
	if err != nil {
		return lines.View{}, fmt.Errorf("read memory: %w", err)
	}
	gone := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return wanted[id] || id == file.NotKept })
	if len(gone) == 0 {
		return v, nil
	}
	err = store.Each(ctx, s.db, func(row store.Row) error {
		var id, next string
		err := row.Scan(&id, &next)
		v.Successor[id] = next
		return err
	}, successors, store.Array(gone))
	if err != nil {
		return lines.View{}, fmt.Errorf("read memory: %w", err)
	}
	return v, nil
}

// successors are what took the place of entries, or, where that was undone, whose place they had taken.
const successors = `SELECT new.entry, old.entry FROM memory_op AS new
		CROSS JOIN memory_op AS old ON old.batch = new.batch AND old.op IN ('supersede', 'merge')
		WHERE new.entry IN (SELECT value FROM json_each(?1)) AND new.op = 'add'
			AND iif(old.after = '', '', json_extract(old.after, '$.by')) = new.entry
	UNION ALL SELECT id, successor FROM memory WHERE successor <> '' AND id IN (SELECT value FROM json_each(?1))`

// Counts implements file.Entries.
func (s inFiles) Counts(ctx context.Context, scope Scope, id string) (yes bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM memory WHERE id = ? AND scope = ? AND state = 'active'`, id, scope).Scan(&yes)
	if err != nil {
		err = fmt.Errorf("read memory: %w", err)
	}
	return yes, err
}

// TakeIn implements file.Entries.
func (s inFiles) TakeIn(ctx context.Context, e file.Edit, also func(store.DBTX, []string) error) error {
	_, err := s.commit(ctx, byFile, func(c *change) error {
		i := importer{change: c, Edit: e}
		before, err := i.before()
		if err != nil {
			return err
		}
		done := lines.Compare(before, e.Texts)
		ids, err := i.lines(done)
		if err != nil {
			return err
		}
		if err := i.remove(done.Gone); err != nil {
			return err
		}
		if i.refused > 0 {
			s.log.Warn("lines that were to be forgotten were taken out of a memory file again; `bot memory add` takes them up once more",
				"file", e.Name, "lines", i.refused)
		}
		if i.removed > 0 {
			s.log.Info("lines were removed from a memory file; `bot memory undo` brings them back",
				"file", e.Name, "lines", i.removed, "batch", c.batch)
		}
		return also(c.tx, ids)
	})
	return err
}

// Move implements file.Entries.
func (s inFiles) Move(ctx context.Context, from, to Scope, also func(store.DBTX) error) error {
	_, err := s.commit(ctx, byFile, func(c *change) error {
		all, err := entries(ctx, c.tx, `WHERE scope = ? AND state <> 'forgotten' ORDER BY n`, from)
		if err != nil {
			return err
		}
		for _, e := range all {
			if _, err := c.move(e, to); err != nil {
				return err
			}
		}
		return also(c.tx)
	})
	return err
}

// importer takes in what was done to one file.
type importer struct {
	*change
	file.Edit
	refused, removed int
}

// before reads what stood in the file.
func (i *importer) before() ([]lines.Line, error) {
	all := make([]lines.Line, 0, len(i.Before))
	for _, id := range i.Before {
		l := lines.Line{ID: id}
		err := i.tx.QueryRowContext(i.ctx, `SELECT text FROM memory WHERE id = ?`, id).Scan(&l.Text)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

func (i *importer) lines(e lines.Edit) ([]string, error) {
	ids := make([]string, len(e.Lines))
	for n, l := range e.Lines {
		if ids[n] = l.ID; l.ID != "" {
			continue
		}
		var err error
		if ids[n], err = i.line(l); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// line finds or makes the entry of a line that was not there before.
func (i *importer) line(l lines.Edited) (string, error) {
	hash := text.Hash(l.Text)
	// Without the name of the index all that is shown is read, in its order, for each line.
	known, err := entries(i.ctx, i.tx, `INDEXED BY memory_by_hash WHERE scope = ? AND hash = ? AND state IN ('active', 'archived')
		AND conversation = '' AND text = ? ORDER BY state, successor = '' DESC, n DESC LIMIT 1`, i.Scope, hash, l.Text)
	if err != nil {
		return "", err
	}
	if len(known) == 1 && known[0].State == Active {
		return known[0].ID, i.part(known[0])
	}
	if forgotten, err := i.isForgotten(i.Scope, l.Text); err != nil {
		return "", err
	} else if forgotten {
		i.refused++
		return file.NotKept, nil
	}
	if len(known) == 1 && l.Replaces == "" { // cut out before, and now put in again
		after := known[0]
		after.State, after.By, after.ValidTo = Active, "", time.Time{}
		return after.ID, i.set(known[0], after, "restore", 0)
	}
	next := Entry{Text: l.Text, Scope: i.Scope, Source: FromFile, Integrity: trust.Owner, ObservedAt: i.At}
	if l.Replaces != "" {
		old, err := entryByID(i.ctx, i.tx, l.Replaces)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		if err == nil && old.State == Active && old.Scope == i.Scope {
			next.Subject, next.Kind, next.Pinned = old.Subject, old.Kind, old.Pinned
			e, err := i.supersede(old, next)
			return e.ID, err
		}
	}
	e, err := i.add(next)
	return e.ID, err
}

// part makes e, which a person wrote as a line of its own, no member of another any more.
func (i *importer) part(e Entry) error {
	if e.By == "" || i.Unedited {
		return nil
	}
	after := e
	after.By = ""
	return i.set(e, after, "note", 0)
}

func (i *importer) remove(ids []string) error {
	for _, id := range ids {
		e, err := entryByID(i.ctx, i.tx, id)
		if errors.Is(err, ErrNotFound) || err == nil && (e.State != Active || e.Scope != i.Scope) {
			continue // it was changed otherwise already
		}
		if err != nil {
			return err
		}
		if err := i.retire(e); err != nil {
			return err
		}
		i.removed++
	}
	return nil
}
