package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reverie/internal/memory/lines"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// attempts is how often a file is begun again when somebody changes it meanwhile.
const attempts = 20

// byFile is the actor of what people do in the files.
const byFile = "file"

// notKept stands for a line whose text is not taken in.
const notKept = "-"

// base is what a file held when it was last written or read.
type base struct {
	name, hash string
	ids        []string // the entry of each line
}

func readBase(ctx context.Context, db store.DBTX, scope Scope) (base, error) {
	var b base
	var lines string
	err := db.QueryRowContext(ctx, `SELECT name, hash, lines FROM memory_file WHERE scope = ?`, scope).Scan(&b.name, &b.hash, &lines)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return base{}, fmt.Errorf("read memory: %w", err)
	}
	b.ids = strings.Fields(lines)
	return b, nil
}

func writeBase(ctx context.Context, db store.DBTX, scope Scope, b base) error {
	_, err := db.ExecContext(ctx, `INSERT INTO memory_file (scope, changes, name, hash, lines) VALUES (?1, 1, ?2, ?3, ?4)
		ON CONFLICT (scope) DO UPDATE SET changes = changes + (lines <> ?4), name = ?2, hash = ?3, lines = ?4`,
		scope, b.name, b.hash, strings.Join(b.ids, " "))
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// sync makes the file of scope and the entries say the same: first what people
// did to the file is taken in, then what changed otherwise is written into it.
// The lock is held.
func (s *Store) sync(ctx context.Context, scope Scope) error {
	f, err := s.file(scope)
	if err != nil {
		return err
	}
	for range attempts {
		err = s.trySync(ctx, f)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, errChanged) {
		err = errors.New("it is being changed by another program all the time; try again later")
	}
	if err != nil {
		return fmt.Errorf("memory file %s: %w", f.name, err)
	}
	return nil
}

// trySync is sync, once. errChanged means that the file was changed meanwhile.
func (s *Store) trySync(ctx context.Context, f *file) error {
	was, err := readBase(ctx, s.db, f.scope)
	if err != nil {
		return err
	}
	stamp, data, err := readFile(f.path)
	if err != nil {
		return err
	}
	is := base{f.name, sum(data), was.ids}
	switch {
	case stamp.Exists() && is.hash == was.hash && len(was.ids) == len(lines.Texts(data)):
	case len(lines.Trim(string(data))) == 0:
		if len(was.ids) > 0 {
			// An editor or a disk may do that; nobody forgets everything so.
			s.log.Warn("memory file is empty or gone; that is no order to forget, so it is written again",
				"file", f.name, "entries", len(was.ids))
		}
		is.ids = nil
	default:
		if is.ids, err = s.takeIn(ctx, f, was, is.hash, data); err != nil {
			return err
		}
	}
	v, err := s.view(ctx, f.scope, is.ids)
	if err != nil {
		return err
	}
	if !stamp.Exists() {
		if len(v.Want) == 0 { // no file is made for nothing
			if was.hash == "" && len(was.ids) == 0 {
				return nil
			}
			return writeBase(ctx, s.db, f.scope, base{name: f.name})
		}
		data, is.hash = f.heading(), ""
		if s.lines > 0 {
			data = append(data, "# Shown is what is pinned, new or often used; `bot memory list` shows everything.\n"...)
		}
	}
	out, ids := lines.Render(data, is.ids, v)
	next := base{f.name, sum(out), ids}
	if next.hash != is.hash {
		if err := s.leaving(ctx, f, is, ids); err != nil {
			return err
		}
		if err := s.replace(f, stamp, out); err != nil {
			return err
		}
	}
	s.fault("rendered")
	if next.hash != was.hash || next.name != was.name || strings.Join(next.ids, " ") != strings.Join(was.ids, " ") {
		return writeBase(ctx, s.db, f.scope, next)
	}
	return nil
}

// leaving notes, before the file is written, which of its lines will stand there no longer
// though they still count there, as others are of more use: whoever finds the file written and
// this the last that was noted, because the program was killed in between, must not take them for
// lines that a person removed.
func (s *Store) leaving(ctx context.Context, f *file, is base, next []string) error {
	var stay []string
	for _, id := range is.ids {
		if !slices.Contains(next, id) && id != notKept {
			if counts, err := s.counts(ctx, id, f.scope); err != nil {
				return err
			} else if counts {
				continue
			}
		}
		stay = append(stay, id)
	}
	if len(stay) == len(is.ids) {
		return nil
	}
	return writeBase(ctx, s.db, f.scope, base{is.name, is.hash, stay})
}

// view is what the file of scope is to hold, knowing that it has the lines of ids.
func (s *Store) view(ctx context.Context, scope Scope, ids []string) (lines.View, error) {
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
	gone := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return wanted[id] || id == notKept })
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
	UNION ALL SELECT id, by_id FROM memory WHERE by_id <> '' AND id IN (SELECT value FROM json_each(?1))`

// counts reports whether the entry id counts in scope, whether its file shows it or not.
func (s *Store) counts(ctx context.Context, id string, scope Scope) (yes bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM memory WHERE id = ? AND scope = ? AND state = 'active'`, id, scope).Scan(&yes)
	if err != nil {
		err = fmt.Errorf("read memory: %w", err)
	}
	return yes, err
}

// takeIn makes operations of what a person did to the file, and returns the
// entry of each of its lines.
func (s *Store) takeIn(ctx context.Context, f *file, was base, hash string, data []byte) ([]string, error) {
	var ids []string
	_, err := s.commit(ctx, byFile, func(c *change) error {
		i := importer{change: c, scope: f.scope}
		if info, err := os.Stat(f.path); err == nil && was.hash == "" {
			i.at = info.ModTime()
		}
		before, err := i.before(was.ids)
		if err != nil {
			return err
		}
		e := lines.Compare(before, lines.Texts(data))
		if ids, err = i.lines(e); err != nil {
			return err
		}
		if err := i.remove(e.Gone); err != nil {
			return err
		}
		if i.refused > 0 {
			s.log.Warn("lines that were to be forgotten were taken out of a memory file again; `bot memory add` takes them up once more",
				"file", f.name, "lines", i.refused)
		}
		if i.removed > 0 {
			s.log.Info("lines were removed from a memory file; `bot memory undo` brings them back",
				"file", f.name, "lines", i.removed, "batch", c.batch)
		}
		return writeBase(ctx, c.tx, f.scope, base{f.name, hash, ids})
	})
	return ids, err
}

// importer takes in what was done to one file.
type importer struct {
	*change
	scope            Scope
	at               time.Time // when the file was changed, if nothing is known of it yet
	refused, removed int
}

func (i *importer) before(ids []string) ([]lines.Line, error) {
	all := make([]lines.Line, 0, len(ids))
	for _, id := range ids {
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
		AND conversation = '' AND text = ? ORDER BY state, by_id = '' DESC, n DESC LIMIT 1`, i.scope, hash, l.Text)
	if err != nil {
		return "", err
	}
	if len(known) == 1 && known[0].State == Active {
		return known[0].ID, i.part(known[0])
	}
	if forgotten, err := i.isForgotten(i.scope, l.Text); err != nil {
		return "", err
	} else if forgotten {
		i.refused++
		return notKept, nil
	}
	if len(known) == 1 && l.Replaces == "" { // cut out before, and now put in again
		after := known[0]
		after.State, after.By, after.ValidTo = Active, "", time.Time{}
		return after.ID, i.set(known[0], after, "restore", 0)
	}
	next := Entry{Text: l.Text, Scope: i.scope, Source: FromFile, Integrity: trust.Owner, ObservedAt: i.at}
	if l.Replaces != "" {
		old, err := entryByID(i.ctx, i.tx, l.Replaces)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		if err == nil && old.State == Active && old.Scope == i.scope {
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
	if e.By == "" {
		return nil
	}
	after := e
	after.By = ""
	return i.set(e, after, "note", 0)
}

func (i *importer) remove(ids []string) error {
	for _, id := range ids {
		e, err := entryByID(i.ctx, i.tx, id)
		if errors.Is(err, ErrNotFound) || err == nil && (e.State != Active || e.Scope != i.scope) {
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

// adopt brings files to the names they have now: MEMORIES.txt belongs to the
// first owner, and who that is may change. The lock is held.
func (s *Store) adopt(ctx context.Context) error {
	type holding struct {
		scope Scope
		name  string
	}
	held, err := store.List(ctx, s.db, func(row store.Row) (h holding, err error) {
		err = row.Scan(&h.scope, &h.name)
		return h, err
	}, `SELECT scope, name FROM memory_file WHERE name <> '' ORDER BY name <> ?, scope`, ownersFile) // which leaves its name first
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	for _, h := range held {
		name := s.File(h.scope)
		if h.name == name {
			continue
		}
		if h.name == ownersFile && s.owner != "" && (terminal(h.scope.Person()) || terminal(s.owner)) {
			err = s.inherit(ctx, h.scope, Private(s.owner))
		} else {
			err = s.rename(ctx, h.scope, h.name, name)
		}
		if err != nil {
			return fmt.Errorf("memory file %s: %w", h.name, err)
		}
		s.log.Info("a memory file has another name now: the owner changed", "scope", h.scope, "was", h.name)
	}
	return nil
}

// terminal tells the person at the terminal from one with an account.
func terminal(person string) bool { return !strings.HasPrefix(person, "@") }

// rename gives the file of scope another name. It may have it already, if the program was killed in between.
func (s *Store) rename(ctx context.Context, scope Scope, was, name string) error {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(s.dir, filepath.FromSlash(was)), path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err := s.db.ExecContext(ctx, `UPDATE memory_file SET name = ? WHERE scope = ?`, name, scope)
	return err
}

// inherit gives the memory of the person at the terminal to the owner's account, or the other way
// round: both names mean whoever runs the program. The entries go into the file that from has.
func (s *Store) inherit(ctx context.Context, from, to Scope) error {
	old, err := readBase(ctx, s.db, to)
	if err != nil {
		return err
	}
	_, err = s.commit(ctx, byFile, func(c *change) error {
		all, err := entries(ctx, c.tx, `WHERE scope = ? AND state <> 'forgotten' ORDER BY n`, from)
		if err != nil {
			return err
		}
		for _, e := range all {
			after := e
			after.Scope = to
			if err := c.set(e, after, "move", 0); err != nil {
				return err
			}
		}
		_, err = c.tx.ExecContext(ctx, `UPDATE OR REPLACE memory_file SET scope = ?2, changes = changes + 1 WHERE scope = ?1`, from, to)
		return err
	})
	if err != nil || old.name == "" {
		return err
	}
	if err := os.Remove(filepath.Join(s.dir, filepath.FromSlash(old.name))); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
