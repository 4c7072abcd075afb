package dream

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/task"
)

// chores holds the changes of tasks and the proposals of earlier dreams, as rows of dream_change. The keys
// are kind and item, and for proposals the other item.
type chores map[[3]string]chore

// chore is when a change was last made, and whether a person undid it.
type chore struct {
	at     time.Time
	undone bool
}

// doneSince reports whether kind was done to item after since, or was ever undone.
func (c chores) doneSince(kind task.TidyKind, item string, since time.Time) bool {
	last := c[[3]string{string(kind), item}]
	return last.undone || last.at.After(since)
}

// newProposals returns up to maxProposals proposals that were not made before.
func (c chores) newProposals(proposals []report.Proposal) []report.Proposal {
	all := slices.DeleteFunc(proposals, func(p report.Proposal) bool {
		key := [3]string{proposed, p.Item, p.Other}
		_, before := c[key]
		c[key] = chore{}
		return before
	})
	return all[:min(len(all), maxProposals)]
}

// chores reads the changes and proposals of earlier dreams.
func (d *Dreamer) chores(ctx context.Context) (chores, error) {
	c := chores{}
	err := store.Each(ctx, d.cfg.DB, func(row store.Row) error {
		var key [3]string
		var at int64
		var undone bool
		err := row.Scan(&key[0], &key[1], &key[2], &at, &undone)
		c[key] = chore{time.UnixMilli(at), undone}
		return err
	}, `SELECT kind, item, iif(kind = ?, other, ''), max(at), max(state = 'undone') FROM dream_change GROUP BY 1, 2, 3`, proposed)
	return c, store.Wrap(err, "dream: read what was done to tasks")
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
