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

// attempts is how often a file is begun again when somebody changes it meanwhile.
const attempts = 20

// Sync makes the file of scope and the entries say the same: first what people
// did to the file is taken in, then what changed otherwise is written into it.
func (f *Files) Sync(ctx context.Context, scope trust.Readers) error {
	if err := scope.Check(); err != nil {
		return err
	}
	var err error
	for range attempts {
		err = f.trySync(ctx, scope)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, errChanged) {
		err = errors.New("it is being changed by another program all the time; try again later")
	}
	if err != nil {
		return fmt.Errorf("memory file %s: %w", f.Name(scope), err)
	}
	return nil
}

// trySync is Sync, once. errChanged means that the file was changed meanwhile.
func (f *Files) trySync(ctx context.Context, scope trust.Readers) error {
	was, err := f.Noted(ctx, scope)
	if err != nil {
		return err
	}
	name := f.Name(scope)
	stamp, data, err := read(f.path(name))
	if err != nil {
		return err
	}
	is, texts := Noted{name: name, hash: sum(data), lines: was.lines}, lines.Texts(data)
	switch {
	case stamp.Exists() && is.hash == was.hash && len(was.IDs()) == len(texts):
	case len(lines.Trim(string(data))) == 0:
		if was.lines != "" {
			// An editor or a disk may do that; nobody forgets everything so.
			f.c.Log.Warn("memory file is empty or gone; that is no order to forget, so it is written again",
				"file", name, "entries", len(was.IDs()))
		}
		is.lines = ""
	default:
		if is.lines, err = f.takeIn(ctx, scope, was, is, texts); err != nil {
			return err
		}
	}
	v, err := f.c.Entries.View(ctx, scope, is.IDs())
	if err != nil {
		return err
	}
	if !stamp.Exists() {
		if len(v.Want) == 0 { // no file is made for nothing
			if was.hash == "" && was.lines == "" {
				return nil
			}
			return note(ctx, f.c.DB, scope, Noted{name: name})
		}
		data, is.hash = f.heading(scope), ""
	}
	out, ids := lines.Render(data, is.IDs(), v)
	next := Noted{name: name, hash: sum(out), lines: strings.Join(ids, " ")}
	if next.hash != is.hash {
		if err := f.leaving(ctx, scope, is, ids); err != nil {
			return err
		}
		if err := f.replace(f.path(name), stamp, out); err != nil {
			return err
		}
	}
	f.c.Fault("rendered")
	if next.hash != was.hash || next.name != was.name || next.lines != was.lines {
		return note(ctx, f.c.DB, scope, next)
	}
	return nil
}

// takeIn has changes made of what a person did to the file, and returns the entry of each of its lines.
func (f *Files) takeIn(ctx context.Context, scope trust.Readers, was, is Noted, texts []string) (ids string, err error) {
	e := Edit{Scope: scope, Name: is.name, Before: was.IDs(), Texts: texts, Unedited: is.hash == was.hash}
	if info, err := os.Stat(f.path(is.name)); err == nil && was.hash == "" {
		e.At = info.ModTime()
	}
	err = f.c.Entries.TakeIn(ctx, e, func(tx store.DBTX, now []string) error {
		ids = strings.Join(now, " ")
		return note(ctx, tx, scope, Noted{name: is.name, hash: is.hash, lines: ids})
	})
	return ids, err
}

// leaving notes, before the file is written, which of its lines will stand there no longer
// though they still count there, as others are of more use: whoever finds the file written and
// this the last that was noted, because the program was killed in between, must not take them for
// lines that a person removed.
func (f *Files) leaving(ctx context.Context, scope trust.Readers, is Noted, next []string) error {
	var stay []string
	for _, id := range is.IDs() {
		if !slices.Contains(next, id) && id != NotKept {
			if counts, err := f.c.Entries.Counts(ctx, scope, id); err != nil {
				return err
			} else if counts {
				continue
			}
		}
		stay = append(stay, id)
	}
	if len(stay) == len(is.IDs()) {
		return nil
	}
	return note(ctx, f.c.DB, scope, Noted{name: is.name, hash: is.hash, lines: strings.Join(stay, " ")})
}

// Adopt brings files to the names they have now: MEMORIES.txt belongs to the
// first owner, and who that is may change.
func (f *Files) Adopt(ctx context.Context) error {
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
		if h.name == ownersFile && f.c.Owner != "" && (terminal(h.scope.Person()) || terminal(f.c.Owner)) {
			err = f.inherit(ctx, h.scope, trust.Person(f.c.Owner))
		} else {
			err = f.rename(ctx, h.scope, h.name, name)
		}
		if err != nil {
			return fmt.Errorf("memory file %s: %w", h.name, err)
		}
		f.c.Log.Info("a memory file has another name now: the owner changed", "scope", h.scope, "was", h.name)
	}
	return nil
}

// terminal tells the person at the terminal from one with an account.
func terminal(person string) bool { return !strings.HasPrefix(person, "@") }

// rename gives the file of scope another name. It may have it already, if the program was killed in between.
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

// inherit gives the memory of the person at the terminal to the owner's account, or the other way
// round: both names mean whoever runs the program. The entries go into the file that from has.
func (f *Files) inherit(ctx context.Context, from, to trust.Readers) error {
	old, err := f.Noted(ctx, to)
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
