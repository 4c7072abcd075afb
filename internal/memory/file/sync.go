package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reverie/internal/memory/lines"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// maxSyncAttempts is how often Sync restarts when a file is changed at the same time.
const maxSyncAttempts = 20

// Sync synchronises the file of scope with the entries. First it applies edits of the file to the
// entries, then it writes other changes into the file.
func (f *Files) Sync(ctx context.Context, scope trust.Readers) error {
	if err := scope.Check(); err != nil {
		return err
	}
	var err error
	for range maxSyncAttempts {
		err = f.trySync(ctx, scope)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, errChanged) {
		err = errors.New("another program keeps changing it; try again later")
	}
	return store.Wrap(err, "memory file %s", f.Name(scope))
}

// trySync is one attempt of Sync. It returns errChanged if the file was changed at the same time.
func (f *Files) trySync(ctx context.Context, scope trust.Readers) error {
	stored, err := f.StoredSnapshot(ctx, scope)
	if err != nil {
		return err
	}
	name := f.Name(scope)
	stamp, data, err := read(f.path(name))
	if err != nil {
		return err
	}
	current, texts := Snapshot{name: name, hash: hashOf(data), lines: stored.lines}, lines.Texts(data)
	switch {
	case stamp.Exists() && current.hash == stored.hash && len(stored.IDs()) == len(texts):
	case len(lines.Trim(string(data))) == 0:
		if stored.lines != "" {
			// An editor or a full disk can empty a file; it does not mean that all should be forgotten.
			f.c.Log.Warn("memory file is empty or missing; its entries are kept, and the file is written again",
				"file", name, "entries", len(stored.IDs()))
		}
		current.lines = ""
	default:
		if current.lines, err = f.applyEdit(ctx, scope, stored, current, texts); err != nil {
			return err
		}
	}
	v, err := f.c.Entries.View(ctx, scope, current.IDs())
	if err != nil {
		return err
	}
	if !stamp.Exists() {
		if len(v.Want) == 0 { // do not create an empty file
			if stored.hash == "" && stored.lines == "" {
				return nil
			}
			return saveSnapshot(ctx, f.c.DB, scope, Snapshot{name: name})
		}
		data, current.hash = f.heading(scope), ""
	}
	out, ids := lines.Render(data, current.IDs(), v)
	next := Snapshot{name: name, hash: hashOf(out), lines: strings.Join(ids, " ")}
	if next.hash != current.hash {
		if err := f.recordDropped(ctx, scope, current, ids); err != nil {
			return err
		}
		if err := f.replace(f.path(name), stamp, out); err != nil {
			return err
		}
	}
	f.c.Fault("rendered")
	if next.hash != stored.hash || next.name != stored.name || next.lines != stored.lines {
		return saveSnapshot(ctx, f.c.DB, scope, next)
	}
	return nil
}

// applyEdit applies a person's edit to the entries. It returns the entry of each line.
func (f *Files) applyEdit(ctx context.Context, scope trust.Readers, stored, current Snapshot, texts []string) (ids string, err error) {
	e := Edit{Scope: scope, Name: current.name, Before: stored.IDs(), Texts: texts, Unedited: current.hash == stored.hash}
	if info, err := os.Stat(f.path(current.name)); err == nil && stored.hash == "" {
		e.At = info.ModTime()
	}
	err = f.c.Entries.ApplyEdit(ctx, e, func(tx store.DBTX, now []string) error {
		ids = strings.Join(now, " ")
		return saveSnapshot(ctx, tx, scope, Snapshot{name: current.name, hash: current.hash, lines: ids})
	})
	return ids, err
}

// recordDropped records which active entries the next rendering of the file leaves out. After a
// crash, Sync must not mistake them for lines that a person deleted.
func (f *Files) recordDropped(ctx context.Context, scope trust.Readers, current Snapshot, nextIDs []string) error {
	var stay []string
	for _, id := range current.IDs() {
		if !slices.Contains(nextIDs, id) && id != Rejected {
			if counts, err := f.c.Entries.IsActive(ctx, scope, id); err != nil {
				return err
			} else if counts {
				continue
			}
		}
		stay = append(stay, id)
	}
	if len(stay) == len(current.IDs()) {
		return nil
	}
	return saveSnapshot(ctx, f.c.DB, scope, Snapshot{name: current.name, hash: current.hash, lines: strings.Join(stay, " ")})
}

// RenameForOwner renames files after a change of the first owner, to whom MEMORIES.txt belongs.
func (f *Files) RenameForOwner(ctx context.Context) error {
	type holding struct {
		scope trust.Readers
		name  string
	}
	held, err := store.List(ctx, f.c.DB, func(row store.Row) (h holding, err error) {
		err = row.Scan(&h.scope, &h.name)
		return h, err
	}, `SELECT scope, name FROM memory_file WHERE name <> '' ORDER BY name <> ?, scope`, ownersFile) // which leaves its name first
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	for _, h := range held {
		name := f.Name(h.scope)
		if h.name == name {
			continue
		}
		if h.name == ownersFile && f.c.Owner != "" && (isTerminalUser(h.scope.Person()) || isTerminalUser(f.c.Owner)) {
			err = f.moveOperatorMemory(ctx, h.scope, trust.PersonReaders(f.c.Owner))
		} else {
			err = f.rename(ctx, h.scope, h.name, name)
		}
		if err != nil {
			return fmt.Errorf("memory file %s: %w", h.name, err)
		}
		f.c.Log.Info("memory file renamed: the owner changed", "scope", h.scope, "was", h.name)
	}
	return nil
}

// isTerminalUser distinguishes the person at the terminal from one with a Matrix account.
func isTerminalUser(person string) bool { return !strings.HasPrefix(person, "@") }

// rename renames the file of scope. After a crash it may have the new name already.
func (f *Files) rename(ctx context.Context, scope trust.Readers, was, name string) error {
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.path(was), f.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err := f.c.DB.ExecContext(ctx, `UPDATE memory_file SET name = ? WHERE scope = ?`, name, scope)
	return err
}

// moveOperatorMemory moves the memory of the terminal's person to the owner's account, or back.
// Both names mean the operator. The entries go into the file of from.
func (f *Files) moveOperatorMemory(ctx context.Context, from, to trust.Readers) error {
	old, err := f.StoredSnapshot(ctx, to)
	if err != nil {
		return err
	}
	err = f.c.Entries.Move(ctx, from, to, func(tx store.DBTX) error {
		_, err := tx.ExecContext(ctx, `UPDATE OR REPLACE memory_file SET scope = ?2, changes = changes + 1 WHERE scope = ?1`, from, to)
		return err
	})
	if err != nil || old.name == "" {
		return err
	}
	if err := os.Remove(f.path(old.name)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
