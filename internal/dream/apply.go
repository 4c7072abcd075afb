package dream

import (
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

// apply applies p in one transaction and returns the applied steps. After an error nothing is applied.
func (r *run) apply(ctx context.Context, p *plan) ([]planned, error) {
	steps := store.Map(p.steps, func(s planned) memory.Step { return s.Step })
	record := func(ctx context.Context, tx *sql.Tx, done memory.Applied) error { return r.record(ctx, tx, p, done) }
	done, err := r.d.cfg.Store.Apply(ctx, r.report.Run, steps, record)
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	r.more = r.more || len(done.Skipped) > 0
	for _, l := range done.Skipped {
		r.d.cfg.Log.Info("a step of a dream was left out", "kind", l.Kind, "entry", l.ID, "why", l.Reason)
	}
	return slices.DeleteFunc(slices.Clone(p.steps), func(s planned) bool { return !slices.Contains(done.Done, s.Step) }), nil
}

// Undo reverts the dream run; "" is the newest applied one. Later dreams do not repeat its steps.
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
	if errors.Is(err, memory.ErrNothing) { // it did nothing to memories, or that is undone already
		record := func(ctx context.Context, tx *sql.Tx, _ memory.Applied) error { return also(ctx, tx) }
		_, err = d.cfg.Store.Apply(ctx, "undo "+run, nil, record)
	}
	if err != nil {
		return report.Report{}, fmt.Errorf("dream: %w", err)
	}
	line := func(e memory.Entry) report.Line { return report.Line{Scope: e.Scope, ID: e.ID, Text: e.Text} }
	r.Back, r.Restored = store.Map(undone.Restored, line), store.Map(undone.Changed, line)
	for _, l := range left {
		r.Notes = append(r.Notes, fmt.Sprintf("%s stays as it is: %s", l.ID, l.Reason))
	}
	r.Ended = d.cfg.Now().UTC()
	return r, r.Write(d.cfg.Dir, d.cfg.Location)
}

// copies is how many copies of the database are kept.
const copies = 7

// snapshot copies the database. It deletes the copy if an entry was forgotten meanwhile, because the
// copy might still contain it.
func (d *Dreamer) snapshot(ctx context.Context, run string) error {
	gone := memory.Filter{States: []memory.State{memory.Forgotten}}
	before, err := d.cfg.Store.List(ctx, everything, gone)
	if err != nil {
		return err
	}
	d.sweep()
	path := filepath.Join(d.cfg.Dir, report.Folder, run+".db")
	if err := store.Snapshot(ctx, d.cfg.DB, path); err != nil {
		return err
	}
	if after, err := d.cfg.Store.List(ctx, everything, gone); err != nil || len(after) != len(before) {
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

// sweep removes unfinished copies that a killed process left.
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
