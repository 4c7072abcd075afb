package dream

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/task"
)

// pastChores reads which changes and proposals are not to be repeated: changes made after since or undone
// by a person, and all proposals. The keys are kind, item, and for proposals the other item.
func (d *Dreamer) pastChores(ctx context.Context, since time.Time) (map[[3]string]bool, error) {
	past := map[[3]string]bool{}
	err := store.Each(ctx, d.cfg.DB, func(row store.Row) error {
		var key [3]string
		err := row.Scan(&key[0], &key[1], &key[2])
		past[key] = true
		return err
	}, `SELECT kind, item, iif(kind = ?1, other, '') FROM dream_change WHERE kind = ?1 OR state = 'undone' OR at > ?2`,
		proposed, since.UnixMilli())
	return past, store.Wrap(err, "dream: read what was done to tasks")
}

// proposed is the kind of the rows of proposals.
const proposed = "propose"

// saveProposals stores the proposals of r, so that no later dream repeats them.
func (d *Dreamer) saveProposals(ctx context.Context, r *run) error {
	for _, p := range r.report.Proposals {
		if _, err := d.cfg.DB.ExecContext(ctx, `INSERT INTO dream_change (run, kind, item, other, state, at)
			VALUES (?, ?, ?, ?, 'done', ?)`,
			r.report.Run, proposed, p.Item, p.Other, r.now.UnixMilli()); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
	}
	return nil
}

// recordChores applies and records the task changes of p in tx.
func (r *run) recordChores(ctx context.Context, tx *sql.Tx, p *plan) error {
	if len(p.tasks) == 0 {
		return nil
	}
	steps := make([]task.TidyStep, len(p.tasks))
	for i, t := range p.tasks {
		steps[i] = t.TidyStep
	}
	done, err := r.d.cfg.Tasks.ApplyTidySteps(ctx, tx, r.now, steps)
	if err != nil {
		return err
	}
	for _, t := range done {
		if _, err := tx.ExecContext(ctx, `INSERT INTO dream_change (run, kind, item, other, before, after, state, at)
			VALUES (?, ?, ?, ?, ?, ?, 'done', ?)`, r.report.Run, t.Kind, t.ID, t.Into, t.Before, t.After, r.now.UnixMilli()); err != nil {
			return err
		}
	}
	p.tasks = slices.DeleteFunc(p.tasks, func(o plannedTask) bool {
		return !slices.ContainsFunc(done, func(t task.TidyResult) bool { return t.TidyStep == o.TidyStep })
	})
	return nil
}

// undoChores reverts the task changes of run in tx, and returns a line for each.
func (d *Dreamer) undoChores(ctx context.Context, tx *sql.Tx, run string) (lines []i18n.Text, err error) {
	tasks, err := store.List(ctx, tx, func(row store.Row) (t task.TidyResult, err error) {
		err = row.Scan(&t.Kind, &t.ID, &t.Before, &t.After)
		return t, err
	}, `SELECT kind, item, before, after FROM dream_change WHERE run = ? AND state = 'done' AND kind <> ? ORDER BY id`, run, proposed)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	left, err := d.cfg.Tasks.UndoTidy(ctx, tx, tasks)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		key := "why.task_back"
		if slices.Contains(left, t.ID) {
			key = "why.task_stays"
		}
		lines = append(lines, i18n.New(key, "id", t.ID))
	}
	_, err = tx.ExecContext(ctx, `UPDATE dream_change SET state = 'undone' WHERE run = ? AND state = 'done' AND kind <> ?`, run, proposed)
	return lines, err
}
