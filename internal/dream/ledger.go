package dream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/store"
	"reverie/internal/task"
)

// lease locks the data folder for one dream. The lock ends with the process.
func (d *Dreamer) lease() (release func(), err error) {
	release, held, err := store.TryLockFile(filepath.Join(d.cfg.Dir, report.Folder, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	if held {
		return nil, ErrBusy
	}
	return release, nil
}

// cutOff is the reason of a dream that was interrupted.
var cutOff = i18n.New("why.dream_cut_off")

// begin records that run has started, and marks unfinished earlier runs as interrupted.
func (d *Dreamer) begin(ctx context.Context, run string, now time.Time) error {
	_, err := d.cfg.DB.ExecContext(ctx, `UPDATE dream_run SET state = 'failed', ended = ?, reason = ? WHERE state = 'planning'`,
		now.UnixMilli(), cutOff)
	if err == nil {
		_, err = d.cfg.DB.ExecContext(ctx, `INSERT INTO dream_run (id, at, state) VALUES (?, ?, 'planning')`, run, now.UnixMilli())
	}
	return store.Wrap(err, "dream")
}

// finish records the end of a run and stores its questions and proposals. It also writes the
// report.
func (d *Dreamer) finish(ctx context.Context, n *run) error {
	r := &n.report
	mark := int64(0) // 0 = the next dream compares the same entries again
	if len(n.o.Phases) == 0 && !n.more && (r.State == report.Applied || r.State == report.Nothing) {
		mark = n.now.Add(-settled).UnixMilli()
	}
	_, err := d.cfg.DB.ExecContext(ctx, `UPDATE dream_run SET ended = ?, state = CASE WHEN state = 'planning' THEN ? ELSE state END,
		compared_until = ?, calls = ?, harvest = ?, tokens = ?, reason = ? WHERE id = ?`,
		r.Ended.UnixMilli(), r.State, mark, r.Cost.Calls, r.Cost.Read, r.Cost.Tokens, r.Reason, r.Run)
	return errors.Join(store.Wrap(err, "dream"), d.saveQuestions(ctx, r), d.saveProposals(ctx, n), r.Write(d.cfg.Dir, d.cfg.Location))
}

// loadPast reads what earlier dreams did and asked.
func (d *Dreamer) loadPast(ctx context.Context) (p past, err error) {
	p = past{replaced: map[string]bool{}, refused: map[[2]string]bool{}, asked: map[[2]string]bool{}}
	var mark, last int64
	if err := d.cfg.DB.QueryRowContext(ctx, `SELECT coalesce(max(compared_until), 0),
		coalesce(max(ended) FILTER (WHERE state IN ('applied', 'nothing')), ?) FROM dream_run`,
		d.cfg.Now().AddDate(0, 0, -1).UnixMilli()).Scan(&mark, &last); err != nil {
		return p, fmt.Errorf("dream: %w", err)
	}
	p.since, p.last = time.UnixMilli(mark), time.UnixMilli(last)
	asked, err := d.questions().All(ctx)
	if err != nil {
		return p, err
	}
	for _, q := range asked {
		p.asked[pairOf(q.First.ID, q.Second.ID)] = true
	}
	err = store.Each(ctx, d.cfg.DB, func(row store.Row) error {
		var kind memory.StepKind
		var a, b string
		var undone bool
		err := row.Scan(&kind, &a, &b, &undone)
		switch {
		case undone:
			p.refused[pairOf(a, b)] = true
		case kind == memory.SupersedeStep:
			p.replaced[b] = true
		}
		return err
	}, `SELECT kind, entry, successor, undone FROM dream_op`)
	return p, store.Wrap(err, "dream: read what earlier dreams did")
}

// loadVerdicts gives pairs the verdicts that model gave before, and returns the others.
func (d *Dreamer) loadVerdicts(ctx context.Context, pairs []*pair, salt []byte, model string, fresh time.Time) []*pair {
	var todo []*pair
	for _, p := range pairs {
		err := d.cfg.DB.QueryRowContext(ctx, `SELECT verdict FROM dream_verdict
			WHERE pair = ? AND model = ? AND (verdict <> 'unclear' OR at > ?)`,
			p.hash(salt), model, fresh.UnixMilli()).Scan(&p.verdict)
		if err != nil { // an unreadable row is asked about again
			todo = append(todo, p)
		}
	}
	return todo
}

func (d *Dreamer) saveVerdicts(ctx context.Context, batch []*pair, salt []byte, model string, now time.Time) error {
	return store.InTx(ctx, d.cfg.DB, func(tx *sql.Tx) error {
		for _, p := range batch {
			if _, err := tx.ExecContext(ctx, `INSERT INTO dream_verdict (pair, model, verdict, at) VALUES (?, ?, ?, ?)
				ON CONFLICT (pair, model) DO UPDATE SET verdict = excluded.verdict, at = excluded.at`,
				p.hash(salt), model, p.verdict, now.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

// record writes the applied steps of p in the transaction that applies them.
func (r *run) record(ctx context.Context, tx *sql.Tx, p *plan, done memory.Applied) error {
	run := r.report.Run
	why := map[memory.Step]string{}
	for _, s := range p.steps {
		why[s.Step] = s.why
	}
	for _, s := range done.Done {
		if _, err := tx.ExecContext(ctx, `INSERT INTO dream_op (run, kind, entry, successor, why) VALUES (?, ?, ?, ?, ?)`,
			run, s.Kind, s.ID, s.By, why[s]); err != nil {
			return err
		}
	}
	if err := r.recordChores(ctx, tx, p); err != nil {
		return err
	}
	if len(done.Done) == 0 && len(p.tasks) == 0 {
		return nil // nothing to undo
	}
	return store.Exec(ctx, tx, `UPDATE dream_run SET state = 'applied', batch = ? WHERE id = ?`, done.Batch, run)
}

func (d *Dreamer) questions() questions.Store {
	return questions.Store{DB: d.cfg.DB, Memory: d.cfg.Store}
}

// saveQuestions stores the questions of r and sets their numbers.
func (d *Dreamer) saveQuestions(ctx context.Context, r *report.Report) (err error) {
	for i := 0; i < len(r.Questions) && err == nil; i++ {
		q := &r.Questions[i]
		q.Number, err = d.questions().Add(ctx, questions.Question{Run: r.Run, Scope: q.Scope, Why: q.Why,
			First: memory.Entry{ID: q.First}, Second: memory.Entry{ID: q.Second}})
	}
	return err
}

func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.report.Notes = append(r.report.Notes, text)
	r.d.cfg.Log.Info("dream: " + text)
}

// reportSteps adds the applied steps and task changes of p to the report.
func (r *run) reportSteps(p *plan, steps []planned) {
	for _, t := range p.tasks {
		r.report.Tasks = append(r.report.Tasks, t.change)
	}
	for _, s := range steps {
		e := p.memories.byID[s.ID]
		c := report.Change{Line: report.Line{Scope: e.Scope, ID: e.ID, Text: e.Text}, By: s.By, Why: s.why}
		if by := p.memories.byID[s.By]; by != nil {
			c.ByText = by.Text
		}
		r.report.Add(s.Kind, c)
	}
}

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
	steps := store.Map(p.tasks, func(t plannedTask) task.TidyStep { return t.TidyStep })
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
