package dream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/store"
)

// lease makes this the one dream at work on the data folder. It ends with its process, so
// a dream that was killed can begin again at once.
func (d *Dreamer) lease() (release func(), err error) {
	release, held, err := store.TryGuard(filepath.Join(d.cfg.Dir, Folder, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	if held {
		return nil, ErrBusy
	}
	return release, nil
}

// cutOff is why a dream failed that did not come to its end.
var cutOff = i18n.New("why.dream_cut_off")

// begin notes that run is at work, and that those before it which did not end were cut off.
func (d *Dreamer) begin(ctx context.Context, run string, now time.Time) error {
	if _, err := d.cfg.DB.ExecContext(ctx, `UPDATE dream_run SET state = 'failed', ended = ?, reason = ? WHERE state = 'planning'`, now.UnixMilli(), cutOff); err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	if _, err := d.cfg.DB.ExecContext(ctx, `INSERT INTO dream_run (id, at, state) VALUES (?, ?, 'planning')`, run, now.UnixMilli()); err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	return nil
}

// finish notes how run ended, what it asks, and writes the report.
func (d *Dreamer) finish(ctx context.Context, n *night) error {
	r := &n.report
	mark := int64(0) // what was not compared yet is compared next time
	if len(n.o.Phases) == 0 && !n.more && (r.State == AppliedState || r.State == Nothing) {
		mark = n.now.Add(-settled).UnixMilli()
	}
	_, err := d.cfg.DB.ExecContext(ctx, `UPDATE dream_run SET ended = ?, state = CASE WHEN state = 'planning' THEN ? ELSE state END, mark = ?, calls = ?, harvest = ?, tokens = ?, reason = ? WHERE id = ?`,
		r.Ended.UnixMilli(), r.State, mark, r.Cost.Calls, r.Cost.Read, r.Cost.Tokens, r.Reason, r.Run)
	if err != nil {
		err = fmt.Errorf("dream: %w", err)
	}
	return errors.Join(err, d.wonder(ctx, r), d.told(ctx, n), d.write(r))
}

// remember reads what earlier dreams left to know.
func (n *night) remember(ctx context.Context) error {
	var mark int64
	if err := n.d.cfg.DB.QueryRowContext(ctx, `SELECT coalesce(max(mark), 0) FROM dream_run`).Scan(&mark); err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	n.since = time.UnixMilli(mark)
	asked, err := n.d.cfg.Store.Wondered(ctx)
	if err != nil {
		return err
	}
	n.asked = map[[2]string]bool{}
	for _, p := range asked {
		n.asked[pairOf(p[0], p[1])] = true
	}
	n.replaced, n.refused = map[string]bool{}, map[[2]string]bool{}
	err = store.Each(ctx, n.d.cfg.DB, func(row store.Row) error {
		var kind memory.StepKind
		var a, b string
		var undone bool
		err := row.Scan(&kind, &a, &b, &undone)
		switch {
		case undone:
			n.refused[pairOf(a, b)] = true
		case kind == memory.SupersedeStep:
			n.replaced[b] = true
		}
		return err
	}, `SELECT kind, entry, by_id, undone FROM dream_op`)
	if err != nil {
		return fmt.Errorf("dream: read what earlier dreams did: %w", err)
	}
	return nil
}

func (d *Dreamer) salt(ctx context.Context) (salt []byte, err error) {
	err = d.cfg.DB.QueryRowContext(ctx, `SELECT salt FROM memory_salt`).Scan(&salt)
	return salt, err
}

// known gives pairs the verdicts that model gave before, and returns the others.
func (d *Dreamer) known(ctx context.Context, pairs []*pair, salt []byte, model string, fresh time.Time) []*pair {
	var todo []*pair
	for _, p := range pairs {
		err := d.cfg.DB.QueryRowContext(ctx, `SELECT verdict FROM dream_seen WHERE pair = ? AND model = ? AND (verdict <> 'unclear' OR at > ?)`,
			p.hash(salt), model, fresh.UnixMilli()).Scan(&p.verdict)
		if err != nil { // what cannot be read is asked again
			todo = append(todo, p)
		}
	}
	return todo
}

// keep stores what model said of batch.
func (d *Dreamer) keep(ctx context.Context, batch []*pair, salt []byte, model string, now time.Time) error {
	return store.InTx(ctx, d.cfg.DB, func(tx *sql.Tx) error {
		for _, p := range batch {
			if _, err := tx.ExecContext(ctx, `INSERT INTO dream_seen (pair, model, verdict, at) VALUES (?, ?, ?, ?)
				ON CONFLICT (pair, model) DO UPDATE SET verdict = excluded.verdict, at = excluded.at`, p.hash(salt), model, p.verdict, now.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

// record writes, within the transaction that does them, what was done, if anything was.
func (n *night) record(ctx context.Context, tx *sql.Tx, done memory.Applied) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM dream_op WHERE run = ? AND undone = 0`, n.report.Run); err != nil {
		return err
	}
	for _, s := range done.Done {
		if _, err := tx.ExecContext(ctx, `INSERT INTO dream_op (run, kind, entry, by_id, why) VALUES (?, ?, ?, ?, ?)`, n.report.Run, s.Kind, s.ID, s.By, n.why(s)); err != nil {
			return err
		}
	}
	if err := n.recordChores(ctx, tx); err != nil {
		return err
	}
	if len(done.Done) == 0 && len(n.chores.tasks) == 0 {
		return nil // there is nothing that could be taken back
	}
	_, err := tx.ExecContext(ctx, `UPDATE dream_run SET state = 'applied', batch = ? WHERE id = ?`, done.Batch, n.report.Run)
	return err
}

// maxQuestions is how many questions a dream comes upon in one scope: a scope with many
// takes none from the others, and the rest is found in the next nights.
const maxQuestions = 10

func (n *night) tooMany(scope memory.Scope) bool {
	found := 0
	for _, q := range n.report.Questions {
		if q.Scope == scope {
			found++
		}
	}
	return found >= maxQuestions
}

// wonder stores what r asks, and fills in the numbers by which it is answered.
func (d *Dreamer) wonder(ctx context.Context, r *Report) error {
	found := make([]memory.Question, len(r.Questions))
	for i, q := range r.Questions {
		found[i] = memory.Question{Run: r.Run, Scope: q.Scope, First: memory.Entry{ID: q.First}, Second: memory.Entry{ID: q.Second}, Why: q.Why}
	}
	if err := d.cfg.Store.Wonder(ctx, found); err != nil {
		return err
	}
	open, err := d.cfg.Store.Questions(ctx, everything)
	for _, q := range open {
		for i := range r.Questions {
			if q.Run == r.Run && r.Questions[i].First == q.First.ID && r.Questions[i].Second == q.Second.ID {
				r.Questions[i].Number = q.ID
			}
		}
	}
	return err
}

func asked(q memory.Question) Question {
	return Question{Number: q.ID, Scope: q.Scope, First: q.First.ID, FirstText: q.First.Text, FirstAt: q.First.Since(),
		Second: q.Second.ID, SecondText: q.Second.Text, SecondAt: q.Second.Since(), Why: q.Why}
}

// sameAs reports whether two entries say the same, as far as is known.
func (n *night) sameAs(a, b *signature) bool {
	aboutOne := a.Scope == b.Scope && (strings.EqualFold(a.Subject, b.Subject) || a.Subject == "" && b.Subject == b.Scope.Person() || b.Subject == "" && a.Subject == a.Scope.Person())
	return aboutOne && (covers(a, b) || covers(b, a)) || n.alike[pairOf(a.ID, b.ID)] || sameGroup(a, b)
}

// repeated reports whether p asks in other words what was a question before.
func (n *night) repeated(p *pair) bool {
	for q := range n.asked {
		for i, id := range q {
			other := n.byID[q[1-i]]
			if other != nil && (id == p.b.ID && n.sameAs(other, p.a) || id == p.a.ID && n.sameAs(other, p.b)) {
				return true
			}
		}
	}
	return false
}
