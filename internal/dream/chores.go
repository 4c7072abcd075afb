package dream

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/task"
)

// chores is what a night does beside memory. It stands in dream_chore, written in the
// transaction of the memories.
type chores struct {
	tasks  []plannedTask
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

// done reports whether kind was done to item since, or was ever taken back.
func (c *chores) done(kind, item string, since time.Time) bool {
	last := c.before[[2]string{kind, item}]
	return last.undone || last.at.After(since)
}

// planChores plans what is done to tasks, and proposes what may be done to skills.
func (n *night) planChores(ctx context.Context) error {
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
		c.before[key] = chore{time.UnixMilli(at), c.before[key].undone || state == "undone"}
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

// recordChores does what is planned for tasks within the transaction of the memories.
func (n *night) recordChores(ctx context.Context, tx *sql.Tx) error {
	if len(n.chores.tasks) == 0 {
		return nil
	}
	steps := make([]task.Tidying, len(n.chores.tasks))
	for i, t := range n.chores.tasks {
		steps[i] = t.Tidying
	}
	done, err := n.d.cfg.Tasks.Tidy(ctx, tx, n.now, steps)
	if err != nil {
		return err
	}
	for _, t := range done {
		if _, err := tx.ExecContext(ctx, `INSERT INTO dream_chore (run, kind, item, other, before, after, state, at) VALUES (?, ?, ?, ?, ?, ?, 'done', ?)`,
			n.report.Run, t.Kind, t.ID, t.Into, t.Before, t.After, n.now.UnixMilli()); err != nil {
			return err
		}
	}
	n.chores.tasks = slices.DeleteFunc(n.chores.tasks, func(p plannedTask) bool {
		return !slices.ContainsFunc(done, func(t task.Tidied) bool { return t.Tidying == p.Tidying })
	})
	return nil
}

// undoChores gives tasks back what run changed, within tx. It says in a line each what came of it.
func (d *Dreamer) undoChores(ctx context.Context, tx *sql.Tx, run string) (lines []i18n.Text, err error) {
	tasks, err := store.List(ctx, tx, func(row store.Row) (t task.Tidied, err error) {
		err = row.Scan(&t.Kind, &t.ID, &t.Before, &t.After)
		return t, err
	}, `SELECT kind, item, before, after FROM dream_chore WHERE run = ? AND state = 'done' AND kind <> ? ORDER BY id`, run, proposed)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	left, err := d.cfg.Tasks.Untidy(ctx, tx, tasks)
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
	_, err = tx.ExecContext(ctx, `UPDATE dream_chore SET state = 'undone' WHERE run = ? AND state = 'done' AND kind <> ?`, run, proposed)
	return lines, err
}
