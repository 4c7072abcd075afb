package dream

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"reverie/internal/dream/report"
	"reverie/internal/memory"
	"reverie/internal/store"
)

// apply does p, looks whether everything is still found, and does it again
// without what is not. It returns what was done; an error means that nothing was.
func (r *run) apply(ctx context.Context, p *plan) ([]planned, error) {
	steps := make([]memory.Step, len(p.steps))
	for i, s := range p.steps {
		steps[i] = s.Step
	}
	batch := r.report.Run
	record := func(ctx context.Context, tx *sql.Tx, done memory.Applied) error { return r.record(ctx, tx, p, done) }
	for try := 1; ; try++ {
		done, err := r.d.cfg.Store.Apply(ctx, batch, steps, record)
		if err != nil {
			return nil, fmt.Errorf("dream: %w", err)
		}
		r.d.fault("applied")
		r.more = r.more || len(done.Left) > 0
		for _, l := range done.Left {
			r.d.cfg.Log.Info("a step of a dream was left out", "kind", l.Kind, "entry", l.ID, "why", l.Why)
		}
		lost, err := r.probe(ctx, p.memories, done.Done)
		if err != nil {
			r.note("it could not be looked whether everything is still found: %v", err)
		}
		if len(lost) > 0 {
			if _, _, err := r.d.cfg.Store.UndoRun(ctx, batch, r.takeBack(p, lost)); err != nil {
				// It is done, and the report must not say otherwise.
				r.note("what took the place of %d memories is not found by their words, and could not be taken back: %v", len(lost), err)
				lost = nil
			}
		}
		if len(lost) == 0 {
			return slices.DeleteFunc(slices.Clone(p.steps), func(s planned) bool { return !slices.Contains(done.Done, s.Step) }), nil
		}
		for _, id := range lost {
			r.d.cfg.Log.Info("what took a memory's place is not found by its words", "entry", id)
		}
		r.note("%d steps were taken back, because what took a memory's place is not found by its words", len(lost))
		steps = slices.DeleteFunc(done.Done, func(s memory.Step) bool { return slices.Contains(lost, s.ID) })
		if len(steps) == 0 || try == 3 {
			r.more = r.more || len(steps) > 0
			if steps = nil; len(p.tasks) == 0 {
				return nil, nil
			}
		}
		batch = fmt.Sprintf("%s.%d", r.report.Run, try+1)
	}
}

// takeBack notes, within the transaction that takes a dream back, that it did not happen,
// and that the steps about lost are not to be tried again.
func (r *run) takeBack(p *plan, lost []string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		if _, err := r.d.undoChores(ctx, tx, r.report.Run); err != nil {
			return err
		}
		for _, query := range []string{`UPDATE dream_run SET state = 'planning', batch = '' WHERE id = ?`,
			`DELETE FROM dream_op WHERE run = ? AND undone = 0`, `DELETE FROM dream_chore WHERE run = ?`} {
			if _, err := tx.ExecContext(ctx, query, r.report.Run); err != nil {
				return err
			}
		}
		for _, s := range p.steps {
			if !slices.Contains(lost, s.ID) {
				continue
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO dream_op (run, kind, entry, by_id, why, undone) VALUES (?, ?, ?, ?, ?, 1)`,
				r.report.Run, s.Kind, s.ID, s.By, "not found by its words"); err != nil {
				return err
			}
		}
		return nil
	}
}

// probe asks for each entry that was put out of use with its own words, and lists those
// whose place is not found: neither what took it, nor what says the same as that. What is
// superseded is still found itself, and names what holds since. What took a place in the
// same words is found where the other was, wherever that is.
func (r *run) probe(ctx context.Context, m *memories, steps []memory.Step) (lost []string, err error) {
	next, superseded := map[string]string{}, map[string]bool{}
	for _, s := range steps {
		if s.Kind == memory.MergeStep || s.Kind == memory.SupersedeStep {
			next[s.ID] = s.By
			superseded[s.ID] = s.Kind != memory.MergeStep
		}
	}
	for _, s := range steps {
		if next[s.ID] == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		q := memory.Query{Text: m.byID[s.ID].Text, Scopes: []memory.Scope{m.byID[s.ID].Scope}, K: 5}
		want := map[string]bool{}
		for id := s.ID; id != ""; id = next[id] {
			if id != s.ID || superseded[id] {
				want[cmp.Or(m.byID[id].By, id)] = true
			}
			q.Past = q.Past || superseded[id]
		}
		if q.Past || m.byID[s.ID].plain == m.byID[s.By].plain { // what is past stands below all that holds
			q.K = everywhere
		}
		hits, err := r.d.cfg.Store.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(hits, func(h memory.Hit) bool { return want[h.Entry.ID] || h.Shown != "" && want[h.Entry.By] }) {
			lost = append(lost, s.ID)
		}
	}
	return lost, nil
}

// everywhere is as many hits as an index has for a question.
const everywhere = 200

// Undo takes back what the dream run did; "" is the newest that did something. What
// was taken back is not done again by later dreams.
func (d *Dreamer) Undo(ctx context.Context, run string) (report.Report, error) {
	var batch string
	err := d.cfg.DB.QueryRowContext(ctx, `SELECT id, batch FROM dream_run WHERE state = 'applied' AND ?1 IN ('', id)
		ORDER BY at DESC, rowid DESC LIMIT 1`, run).Scan(&run, &batch)
	if errors.Is(err, sql.ErrNoRows) {
		return report.Report{}, ErrNothing
	}
	if err != nil {
		return report.Report{}, fmt.Errorf("dream: %w", err)
	}
	release, err := d.lease()
	if err != nil {
		return report.Report{}, err
	}
	defer release()
	r := report.Report{Run: run, At: d.cfg.Now().UTC(), State: report.Undone}
	also := func(ctx context.Context, tx *sql.Tx) error {
		for _, query := range []string{`UPDATE dream_op SET undone = 1 WHERE run = ?`,
			`UPDATE dream_run SET state = 'undone' WHERE id = ?`} {
			if _, err := tx.ExecContext(ctx, query, run); err != nil {
				return err
			}
		}
		var err error
		r.Chores, err = d.undoChores(ctx, tx, run)
		return err
	}
	undone, left, err := d.cfg.Store.UndoRun(ctx, batch, also)
	if errors.Is(err, memory.ErrNothing) { // it did nothing to memories
		var chores int
		const done = `SELECT count(*) FROM dream_chore WHERE run = ? AND state = 'done'`
		if err := d.cfg.DB.QueryRowContext(ctx, done, run).Scan(&chores); err != nil || chores == 0 {
			return report.Report{}, errors.Join(ErrNothing, err)
		}
		record := func(ctx context.Context, tx *sql.Tx, _ memory.Applied) error { return also(ctx, tx) }
		_, err = d.cfg.Store.Apply(ctx, "undo "+run, nil, record)
	}
	if err != nil {
		return report.Report{}, fmt.Errorf("dream: %w", err)
	}
	for _, e := range undone.Back {
		r.Back = append(r.Back, report.Line{Scope: e.Scope, ID: e.ID, Text: e.Text})
	}
	for _, e := range undone.Changed {
		r.Restored = append(r.Restored, report.Line{Scope: e.Scope, ID: e.ID, Text: e.Text})
	}
	for _, l := range left {
		r.Notes = append(r.Notes, fmt.Sprintf("%s stays as it is: %s", l.ID, l.Why))
	}
	r.Ended = d.cfg.Now().UTC()
	return r, r.Write(d.cfg.Dir, d.cfg.Location)
}

// copies is how many copies of the database are kept.
const copies = 7

// snapshot keeps a copy of the database as it is now. A copy that could hold what was
// forgotten while it was made is none.
func (d *Dreamer) snapshot(ctx context.Context, run string) error {
	const forgotten = `SELECT count(*) FROM memory_op WHERE op = 'forget'`
	var before, after int
	if err := d.cfg.DB.QueryRowContext(ctx, forgotten).Scan(&before); err != nil {
		return err
	}
	d.sweep()
	path := filepath.Join(d.cfg.Dir, report.Folder, run+".db")
	if err := store.Snapshot(ctx, d.cfg.DB, path); err != nil {
		return err
	}
	d.fault("snapshot")
	if err := d.cfg.DB.QueryRowContext(ctx, forgotten).Scan(&after); err != nil || after != before {
		return errors.Join(errForgotten, err, os.Remove(path))
	}
	all, err := filepath.Glob(filepath.Join(d.cfg.Dir, report.Folder, "*.db"))
	if err != nil {
		return err
	}
	slices.SortFunc(all, byTime)
	for _, old := range all[:max(0, len(all)-copies)] {
		if err := os.Remove(old); err != nil {
			d.cfg.Log.Warn("an old copy could not be removed", "file", old, "err", err)
		}
	}
	return nil
}

// sweep removes copies that were never finished, because the program was killed.
func (d *Dreamer) sweep() {
	found, _ := filepath.Glob(filepath.Join(d.cfg.Dir, report.Folder, "*.db.part*")) // it is no wrong pattern
	for _, path := range found {
		if err := os.Remove(path); err != nil {
			d.cfg.Log.Warn("an unfinished copy could not be removed", "file", path, "err", err)
		}
	}
}

func byTime(a, b string) int {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX != nil || errY != nil {
		return 0
	}
	return x.ModTime().Compare(y.ModTime())
}
