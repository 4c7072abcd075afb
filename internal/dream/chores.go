package dream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/task"
)

// chores is what a night does beside memory. It stands in dream_chore, written in the
// transaction of the memories; files of skills are moved once that is certain.
type chores struct {
	tasks  []plannedTask
	skills []plannedSkill
	before map[[2]string]chore // by kind and item
	told   map[[2]string]bool  // what was proposed before, by item and other
}

// chore is when the same was done last, and whether somebody took it back.
type chore struct {
	at     time.Time
	undone bool
}

// Proposal is what a person may want to do. Nothing was done about it.
type Proposal struct {
	Scope memory.Scope `json:"scope"`
	Text  i18n.Text    `json:"text"`

	item, other string
}

func (c *chores) none() bool { return len(c.tasks) == 0 && len(c.skills) == 0 }

// done reports whether kind was done to item since, or was ever taken back.
func (c *chores) done(kind, item string, since time.Time) bool {
	last := c.before[[2]string{kind, item}]
	return last.undone || last.at.After(since)
}

// planChores plans what is done to tasks and skills.
func (n *night) planChores(ctx context.Context) error {
	if !n.has(Tasks) && !n.has(Skills) {
		return nil
	}
	if err := n.rememberChores(ctx); err != nil {
		return err
	}
	if n.has(Tasks) {
		if err := n.tasks(ctx); err != nil {
			return err
		}
	}
	if n.has(Skills) {
		return n.skills(ctx)
	}
	return nil
}

// rememberChores reads what earlier dreams did and proposed.
func (n *night) rememberChores(ctx context.Context) error {
	c := &n.chores
	c.before, c.told = map[[2]string]chore{}, map[[2]string]bool{}
	err := store.Each(ctx, n.d.cfg.DB, func(row store.Row) error {
		var kind, item, other, state string
		var at int64
		if err := row.Scan(&kind, &item, &other, &state, &at); err != nil {
			return err
		}
		if kind == proposed {
			c.told[[2]string{item, other}] = true
			return nil
		}
		key := [2]string{kind, item}
		c.before[key] = chore{time.UnixMilli(at), c.before[key].undone || state == "undone" || state == "back"}
		return nil
	}, `SELECT kind, item, other, state, at FROM dream_chore ORDER BY id`)
	if err != nil {
		return fmt.Errorf("dream: read what was done to tasks and skills: %w", err)
	}
	return nil
}

// proposed is the kind of what nothing was done about.
const proposed = "propose"

// propose tells people of what they may want to do, once.
func (n *night) propose(scope memory.Scope, item, other string, text i18n.Text) {
	key := [2]string{item, other}
	if n.chores.told[key] || len(n.report.Proposals) >= maxProposals {
		return
	}
	n.chores.told[key] = true
	n.report.Proposals = append(n.report.Proposals, Proposal{Scope: scope, Text: text, item: item, other: other})
}

// told keeps what was proposed, so that it is not proposed again.
func (d *Dreamer) told(ctx context.Context, n *night) error {
	for _, p := range n.report.Proposals {
		if _, err := d.cfg.DB.ExecContext(ctx, `INSERT INTO dream_chore (run, kind, item, other, state, at) VALUES (?, ?, ?, ?, 'done', ?)`,
			n.report.Run, proposed, p.item, p.other, n.now.UnixMilli()); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
	}
	return nil
}

// recordChores does what is planned for tasks, and notes what is to be done to the files
// of skills, within the transaction of the memories.
func (n *night) recordChores(ctx context.Context, tx *sql.Tx) error {
	if n.chores.none() {
		return nil
	}
	add := func(kind, item, other, why, before, after, state string) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO dream_chore (run, kind, item, other, why, before, after, state, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			n.report.Run, kind, item, other, why, before, after, state, n.now.UnixMilli())
		return err
	}
	steps := make([]task.Tidying, len(n.chores.tasks))
	for i, t := range n.chores.tasks {
		steps[i] = t.Tidying
	}
	if len(steps) > 0 {
		done, err := n.d.cfg.Tasks.Tidy(ctx, tx, n.now, steps)
		if err != nil {
			return err
		}
		for _, t := range done {
			if err := add(string(t.Kind), t.ID, t.Into, "", t.Before, t.After, "done"); err != nil {
				return err
			}
		}
		n.chores.tasks = slices.DeleteFunc(n.chores.tasks, func(p plannedTask) bool {
			return !slices.ContainsFunc(done, func(t task.Tidied) bool { return t.Tidying == p.Tidying })
		})
	}
	for _, s := range n.chores.skills {
		if err := add(retire, s.id, "", string(s.change.What), s.before, s.after, "due"); err != nil {
			return err
		}
	}
	return nil
}

// undoChores gives tasks back what run changed, and notes that the files of skills are to
// be, within tx. It says in a line each what came of it.
func (d *Dreamer) undoChores(ctx context.Context, tx *sql.Tx, run string) (lines []i18n.Text, err error) {
	var tasks []task.Tidied
	err = store.Each(ctx, tx, func(row store.Row) error {
		var kind, item, before, after string
		if err := row.Scan(&kind, &item, &before, &after); err != nil {
			return err
		}
		if kind == retire {
			lines = append(lines, i18n.New("why.skill_back", "name", path.Base(item)))
		} else {
			tasks = append(tasks, task.Tidied{Tidying: task.Tidying{Kind: task.TidyKind(kind), ID: item}, Before: before, After: after})
		}
		return nil
	}, `SELECT kind, item, before, after FROM dream_chore WHERE run = ? AND state IN ('done', 'due') AND kind <> ? ORDER BY id`, run, proposed)
	if err != nil {
		return nil, err
	}
	if len(tasks) > 0 {
		left, err := d.cfg.Tasks.Untidy(ctx, tx, tasks)
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			if slices.Contains(left, t.ID) {
				lines = append(lines, i18n.New("why.task_stays", "id", t.ID))
			} else {
				lines = append(lines, i18n.New("why.task_back", "id", t.ID))
			}
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE dream_chore SET state = CASE WHEN state = 'due' THEN 'undone' WHEN kind = 'retire' THEN 'back' ELSE 'undone' END
		WHERE run = ? AND state IN ('done', 'due') AND kind <> ?`, run, proposed)
	return lines, err
}

// Settle does what a dream that was cut off had still to do to the files of skills. Call it
// when the program begins.
func (d *Dreamer) Settle(ctx context.Context) error {
	release, err := d.lease()
	if errors.Is(err, ErrBusy) {
		return nil // who dreams does it
	}
	if err != nil {
		return err
	}
	defer release()
	return d.settle(ctx)
}

// settle moves the files of skills that a dream, or who took it back, had still to move.
// It can be repeated.
func (d *Dreamer) settle(ctx context.Context) error {
	if d.cfg.Skills == nil {
		return nil
	}
	type open struct {
		id                         int64
		item, before, after, state string
	}
	all, err := store.List(ctx, d.cfg.DB, func(row store.Row) (o open, err error) {
		err = row.Scan(&o.id, &o.item, &o.before, &o.after, &o.state)
		return o, err
	}, `SELECT id, item, before, after, state FROM dream_chore WHERE kind = 'retire' AND state IN ('due', 'back') ORDER BY id`)
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	for _, o := range all {
		from, to, next := o.before, o.after, "done"
		if o.state == "back" {
			from, to, next = o.after, o.before, "undone"
		}
		failed := d.cfg.Skills.Shift(from, to)
		if failed != nil {
			d.cfg.Log.Warn("a skill stays as it is", "skill", o.item, "why", failed)
			next = "left"
		}
		if _, err := d.cfg.DB.ExecContext(ctx, `UPDATE dream_chore SET state = ? WHERE id = ?`, next, o.id); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
		d.fault("settled")
	}
	return nil
}
