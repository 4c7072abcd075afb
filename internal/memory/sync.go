package memory

import (
	"context"
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

// byFile is the actor of edits that people make in the files.
const byFile = "file"

// fileEntries adapts Store to file.Entries.
type fileEntries struct{ *Store }

func (s fileEntries) View(ctx context.Context, scope Scope, ids []string) (lines.View, error) {
	v := lines.View{Successor: map[string]string{}, Forgotten: s.forgetting}
	all := `FROM memory WHERE scope = ?1 AND ` + shownCondition
	query, args := `SELECT id, text `+all+` ORDER BY n`, []any{scope}
	if s.fileLines > 0 {
		// The working set: pinned entries, then half of it the most used and the rest the newest.
		query = `WITH used AS MATERIALIZED (SELECT n ` + all + ` AND hits > 0 ORDER BY hits DESC, n DESC LIMIT ?2 - ?2 / 2)
			SELECT id, text ` + all + ` AND (pinned = 1 OR n IN used
				OR n IN (SELECT n ` + all + ` AND n NOT IN used ORDER BY n DESC LIMIT ?2 - (SELECT count(*) FROM used))) ORDER BY n`
		args = append(args, s.fileLines)
	}
	wanted := map[string]bool{}
	err := store.Each(ctx, s.db, func(row store.Row) error {
		var l lines.Line
		err := row.Scan(&l.ID, &l.Text)
		v.Want = append(v.Want, l)
		wanted[l.ID] = true
		return err
	}, query, args...)
	if err != nil {
		return lines.View{}, fmt.Errorf("read memory: %w", err)
	}
	gone := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return wanted[id] || id == file.Rejected })
	if len(gone) == 0 {
		return v, nil
	}
	v.Successor, err = store.Pairs[string, string](ctx, s.db, successors, store.Array(gone))
	return v, store.Wrap(err, "read memory")
}

// successors selects, for each entry ?1, the entry that replaced it. If a replacement by ?1 was
// undone, it selects the entry that ?1 had replaced.
const successors = `SELECT new.entry, old.entry FROM memory_op AS old CROSS JOIN memory_op AS new
		ON new.entry = iif(old.after = '', '', json_extract(old.after, '$.by')) AND new.batch = old.batch AND new.op = 'add'
		WHERE old.op IN ('supersede', 'merge') AND new.entry IN (SELECT value FROM json_each(?1))
			AND old.batch IN (SELECT batch FROM memory_op WHERE entry IN (SELECT value FROM json_each(?1)) AND op = 'add')
	UNION ALL SELECT id, successor FROM memory WHERE successor <> '' AND id IN (SELECT value FROM json_each(?1))`

func (s fileEntries) IsActive(ctx context.Context, scope Scope, id string) (yes bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM memory WHERE id = ? AND scope = ? AND state = 'active'`, id, scope).Scan(&yes)
	return yes, store.Wrap(err, "read memory")
}

func (s fileEntries) ApplyEdit(ctx context.Context, e file.Edit, also func(store.DBTX, []string) error) error {
	_, err := s.commit(ctx, byFile, func(c *change) error {
		i := handEdit{change: c, Edit: e}
		before, err := i.linesBefore()
		if err != nil {
			return err
		}
		done := lines.Compare(before, e.Texts)
		ids, err := i.entryIDs(done)
		if err != nil {
			return err
		}
		if err := i.retireAll(done.Removed); err != nil {
			return err
		}
		if i.refused > 0 {
			s.log.Warn("forgotten lines were removed from a memory file again; `bot memory add` remembers them",
				"file", e.Name, "lines", i.refused)
		}
		if i.removed > 0 {
			s.log.Info("lines were removed from a memory file; `bot memory undo` restores them",
				"file", e.Name, "lines", i.removed, "batch", c.batch)
		}
		return also(c.tx, ids)
	})
	return err
}

func (s fileEntries) Move(ctx context.Context, from, to Scope, also func(store.DBTX) error) error {
	_, err := s.commit(ctx, byFile, func(c *change) error {
		all, err := selectEntries(ctx, c.tx, `WHERE scope = ? AND state <> 'forgotten' ORDER BY n`, from)
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

// handEdit applies a person's edit of one file.
type handEdit struct {
	*change
	file.Edit
	refused, removed int
}

func (i *handEdit) linesBefore() ([]lines.Line, error) {
	all := make([]lines.Line, 0, len(i.Before))
	for _, id := range i.Before {
		text, err := store.Value[string](i.ctx, i.tx, `SELECT text FROM memory WHERE id = ?`, id)
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		all = append(all, lines.Line{ID: id, Text: text})
	}
	return all, nil
}

func (i *handEdit) entryIDs(e lines.Edit) ([]string, error) {
	ids := make([]string, len(e.Lines))
	for n, l := range e.Lines {
		if ids[n] = l.ID; l.ID != "" {
			continue
		}
		var err error
		if ids[n], err = i.entryOf(l); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// entryOf finds or creates the entry of a new line.
func (i *handEdit) entryOf(l lines.Edited) (string, error) {
	hash := text.Hash(l.Text)
	// Without INDEXED BY, SQLite scans all shown entries for each line.
	existing, err := selectEntries(i.ctx, i.tx, `INDEXED BY memory_by_hash WHERE scope = ? AND hash = ? AND state IN ('active', 'archived')
		AND conversation = '' AND text = ? ORDER BY state, successor = '' DESC, n DESC LIMIT 1`, i.Scope, hash, l.Text)
	if err != nil {
		return "", err
	}
	if len(existing) == 1 && existing[0].State == Active {
		return existing[0].ID, i.ungroup(existing[0])
	}
	if forgotten, err := i.isForgotten(i.Scope, l.Text); err != nil {
		return "", err
	} else if forgotten {
		i.refused++
		return file.Rejected, nil
	}
	if len(existing) == 1 && l.Replaces == "" { // the line was cut before and is pasted now
		after := existing[0]
		after.State, after.By, after.ValidTo = Active, "", time.Time{}
		return after.ID, i.update(existing[0], after, "restore")
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

// ungroup makes e, if it was a member, a line of its own again. A person wrote it as one.
func (i *handEdit) ungroup(e Entry) error {
	if e.By == "" || i.Unedited {
		return nil
	}
	after := e
	after.By = ""
	return i.update(e, after, "note")
}

func (i *handEdit) retireAll(ids []string) error {
	for _, id := range ids {
		e, err := entryByID(i.ctx, i.tx, id)
		if errors.Is(err, ErrNotFound) || err == nil && (e.State != Active || e.Scope != i.Scope) {
			continue // another change came first
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
