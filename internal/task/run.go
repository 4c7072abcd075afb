package task

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/text"
)

// Run is one time at which a task fell due.
type Run struct {
	ID      string    `json:"-"` // of this attempt: the same after a restart, another after a failure
	Task    Task      `json:"task"`
	Due     time.Time `json:"due"`
	State   RunState  `json:"state"`
	Attempt int       `json:"attempt"`          // from 1
	Claimed time.Time `json:"claimed"`          // when it was found to be due
	Retry   time.Time `json:"retry,omitzero"`   // when the next attempt begins; zero = it is under way, or over
	Ended   time.Time `json:"ended,omitzero"`   // zero while it is not
	Result  i18n.Text `json:"result,omitempty"` // what was answered, or why not; at most maxResult characters
	Notice  bool      `json:"-"`                // not the run is delivered, but that the task was paused
}

// RunState is how far a run is.
type RunState string

// The states of a run.
const (
	runClaimed RunState = "claimed" // under way, or waiting for another attempt
	runDone    RunState = "done"
	runFailed  RunState = "failed"
	runSkipped RunState = "skipped" // missed, stopped, or not wanted any more
)

const (
	maxResult = 1500 // characters
	maxFailed = 5    // in a row; then the task is paused
	keptRuns  = 300  // of each task
	lateAfter = 2 * time.Minute
)

// backOff is how long to wait after the first, second, … failure in a row.
var backOff = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}

// ErrOutage is why a run fails that had no model to work with. The task cannot help
// it: it is tried until a model answers, and such failures do not count towards those that pause it.
var ErrOutage = errors.New("no language model could be reached")

// ErrStopped is why a run ends that a person stopped: it is not tried again.
var ErrStopped = i18n.New("why.stopped")

// late reports whether r began so long after its time that people should know.
func (r Run) late() bool { return r.Claimed.Sub(r.Due) > lateAfter }

const noticeMark = "notice"

func runID(task string, due time.Time, attempt string) string {
	return fmt.Sprintf("job:%s:%d:%s", task, due.UnixMilli(), attempt)
}

// parseRunID is the other way round.
func parseRunID(id string) (task string, due int64, attempt string, err error) {
	parts := strings.Split(id, ":")
	if len(parts) == 4 && parts[0] == "job" {
		if due, err = strconv.ParseInt(parts[2], 10, 64); err == nil {
			return parts[1], due, parts[3], nil
		}
	}
	return "", 0, "", fmt.Errorf("task: %q is no id of a run", id)
}

const runColumns = columns + `, r.due, r.state, r.attempt, r.claimed, r.retry_at, r.ended, r.result, r.notice`

// scanRun reads runColumns.
func scanRun(row store.Row) (Run, error) {
	var r Run
	var due, claimed int64
	var retry, ended sql.NullInt64
	var notice int
	var err error
	if r.Task, err = scan(row, &due, &r.State, &r.Attempt, &claimed, &retry, &ended, &r.Result, &notice); err != nil {
		return Run{}, err
	}
	r.Due, r.Claimed = time.UnixMilli(due).UTC(), time.UnixMilli(claimed).UTC()
	r.Retry, r.Ended = moment64(retry), moment64(ended)
	r.ID = runID(r.Task.ID, r.Due, strconv.Itoa(r.Attempt))
	if r.Notice = notice == 1; r.Notice {
		r.ID = runID(r.Task.ID, r.Due, noticeMark)
	}
	return r, nil
}

func (s *Store) runs(ctx context.Context, where string, args ...any) ([]Run, error) {
	runs, err := store.List(ctx, s.db, scanRun, `SELECT `+runColumns+` FROM job_run r JOIN task t ON t.id = r.task WHERE `+where, args...)
	return runs, store.Wrap(err, "list runs")
}

// Wanted tells whether the run id is still to be worked on: it is not over, its task is active, and
// not misplaced. What the run itself does to its task, once it has begun, does not count.
func (s *Scheduler) Wanted(ctx context.Context, id string) (bool, error) {
	task, due, attempt, err := parseRunID(id)
	if err != nil {
		return false, err
	}
	_, begun := s.begun.Load(id)
	var wanted bool
	t, err := scan(s.store.db.QueryRowContext(ctx, `SELECT `+columns+`, CASE WHEN ?3 = ?4 THEN r.notice = 1
		ELSE r.state = 'claimed' AND r.attempt = ?3 AND (?5 OR t.status = 'active') END
		FROM job_run r JOIN task t ON t.id = r.task WHERE r.task = ?1 AND r.due = ?2`, task, due, attempt, noticeMark, begun), &wanted)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up run %s: %w", id, err)
	}
	if wanted {
		gone, err := s.misplaced(ctx, t)
		if err != nil || gone {
			return false, err
		}
		s.begun.Store(id, true)
	}
	return wanted, nil
}

// Done records what came of the run id: its answer, or why there is none. It is
// durable when it returns, and changes nothing the second time.
func (s *Scheduler) Done(ctx context.Context, id, answer string, failed error) error {
	task, due, attempt, err := parseRunID(id)
	if err != nil {
		return err
	}
	again := false
	err = store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		r, err := scanRun(tx.QueryRowContext(ctx, `SELECT `+runColumns+` FROM job_run r JOIN task t ON t.id = r.task
			WHERE r.task = ? AND r.due = ?`, task, due))
		switch {
		case err != nil: // also if it was forgotten since
			return err
		case attempt == noticeMark:
			_, err = tx.ExecContext(ctx, `UPDATE job_run SET notice = 2 WHERE task = ? AND due = ?`, task, due)
		case r.State != runClaimed || strconv.Itoa(r.Attempt) != attempt:
		default:
			_, begun := s.begun.Load(id)
			again, err = s.record(ctx, tx, r, begun, answer, failed)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record run %s: %w", id, err)
	}
	s.delivered.Delete(id)
	s.begun.Delete(id)
	if again {
		s.store.poke()
	}
	return nil
}

// record writes what came of r; again tells that the scheduler has to look.
func (s *Scheduler) record(ctx context.Context, tx *sql.Tx, r Run, begun bool, answer string, failed error) (again bool, err error) {
	now := s.store.now()
	switch {
	case r.Task.Status != Active && !begun:
		return false, end(ctx, tx, r, runSkipped, now, i18n.New("why.task_state", "state", r.Task.Status.text()))
	case errors.Is(failed, ErrStopped):
		if err := end(ctx, tx, r, runSkipped, now, ErrStopped); err != nil {
			return false, err
		}
		return false, s.over(ctx, tx, r, now, "stopped")
	case failed == nil:
		if err := end(ctx, tx, r, runDone, now, i18n.Text(answer)); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE task
			SET last_run = ?, run_count = run_count + 1, failures = 0, last_result = ? WHERE id = ?`,
			now.UnixMilli(), clip(answer), r.Task.ID); err != nil {
			return false, err
		}
		return false, s.over(ctx, tx, r, now, "fired")
	case r.Task.Schedule == nil || r.Task.Scheduled.After(r.Claimed): // what is due now is another's business
		return false, end(ctx, tx, r, runFailed, now, i18n.FromError(failed))
	case errors.Is(failed, ErrOutage):
		return true, postpone(ctx, tx, r, now.Add(backOff[len(backOff)-1]), failed)
	}
	failures := r.Task.Failures + 1
	_, err = tx.ExecContext(ctx, `UPDATE task SET last_run = ?, failures = ? WHERE id = ?`, now.UnixMilli(), failures, r.Task.ID)
	if err != nil {
		return false, err
	}
	if failures < maxFailed {
		return true, postpone(ctx, tx, r, now.Add(backOff[min(failures, len(backOff))-1]), failed)
	}
	if err := end(ctx, tx, r, runFailed, now, i18n.FromError(failed)); err != nil {
		return false, err
	}
	paused, err := tx.ExecContext(ctx, `UPDATE task SET status = 'paused', next_due = NULL, updated = ?
		WHERE id = ? AND status = 'active'`, now.UnixMilli(), r.Task.ID)
	if err != nil {
		return false, err
	}
	if n, err := paused.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE job_run SET notice = 1 WHERE task = ? AND due = ?`, r.Task.ID, r.Due.UnixMilli())
	return true, err
}

// postpone has r tried again at that time, as another attempt.
func postpone(ctx context.Context, tx *sql.Tx, r Run, at time.Time, failed error) error {
	_, err := tx.ExecContext(ctx, `UPDATE job_run SET attempt = attempt + 1, retry_at = ?, result = ? WHERE task = ? AND due = ?`,
		at.UnixMilli(), clip(failed.Error()), r.Task.ID, r.Due.UnixMilli())
	return err
}

// end closes r, and forgets the oldest runs of its task.
func end(ctx context.Context, tx *sql.Tx, r Run, state RunState, now time.Time, result i18n.Text) error {
	if _, err := tx.ExecContext(ctx, `UPDATE job_run SET state = ?, ended = ?, retry_at = NULL, result = ? WHERE task = ? AND due = ?`,
		state, now.UnixMilli(), clip(string(result)), r.Task.ID, r.Due.UnixMilli()); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM job_run WHERE task = ?1 AND state <> 'claimed' AND notice <> 1 AND due <
		(SELECT due FROM job_run WHERE task = ?1 ORDER BY due DESC LIMIT 1 OFFSET ?2)`, r.Task.ID, keptRuns-1)
	return err
}

// over completes a task that was due only once and has nothing more to come.
func (s *Scheduler) over(ctx context.Context, tx *sql.Tx, r Run, now time.Time, word string) error {
	if r.Task.Schedule == nil || r.Task.Schedule.Type != once || !r.Task.NextDue.IsZero() {
		return nil
	}
	reason := word + " at " + now.In(s.store.in(r.Task)).Format("2006-01-02 15:04")
	_, err := tx.ExecContext(ctx, `UPDATE task SET status = 'completed', reason = ?, completed = ?, updated = ?
		WHERE id = ? AND status = 'active'`,
		reason, now.UnixMilli(), now.UnixMilli(), r.Task.ID)
	return err
}

func clip(result string) string {
	return text.Cut(strings.TrimSpace(result), maxResult)
}
