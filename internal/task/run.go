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
	"reverie/internal/pace"
	"reverie/internal/store"
	"reverie/internal/text"
)

// Run is one due time of a task.
type Run struct {
	ID      string    `json:"-"` // of this attempt: kept over a restart, new after a failure
	Task    Task      `json:"task"`
	Due     time.Time `json:"due"`
	State   RunState  `json:"state"`
	Attempt int       `json:"attempt"`          // from 1
	Claimed time.Time `json:"claimed"`          // when the scheduler claimed it
	Retry   time.Time `json:"retry,omitzero"`   // next attempt; zero = running or ended
	Ended   time.Time `json:"ended,omitzero"`   // zero until it ends
	Result  i18n.Text `json:"result,omitempty"` // the answer or the error; at most maxResult characters
	Notice  bool      `json:"-"`                // delivers the news that the task was paused instead of the run
}

// RunState is the state of a run.
type RunState string

// The states of a run.
const (
	runClaimed RunState = "claimed" // running, or waiting for a retry
	runDone    RunState = "done"
	runFailed  RunState = "failed"
	runSkipped RunState = "skipped" // missed, stopped, or no longer wanted
)

const (
	maxResult     = 1500 // characters
	maxFailed     = 5    // in a row; then the task is paused
	maxStoredRuns = 300  // of each task
	lateAfter     = 2 * time.Minute
)

// backOff holds the wait after the first, second, … failure in a row.
var backOff = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}

// ErrOutage means that a run failed because no model was reachable. It is retried until one
// answers, and does not count towards pausing the task.
var ErrOutage = errors.New("no language model could be reached")

// ErrStopped means that a person stopped the run. It is not retried.
var ErrStopped = i18n.New("why.stopped")

// late reports whether r started so late that people should be told.
func (r Run) late() bool { return r.Claimed.Sub(r.Due) > lateAfter }

const noticeAttempt = "notice"

func runID(task string, due time.Time, attempt string) string {
	return fmt.Sprintf("job:%s:%d:%s", task, due.UnixMilli(), attempt)
}

// parseRunID is the inverse of runID.
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
	r.Retry, r.Ended = nullTime(retry), nullTime(ended)
	r.ID = runID(r.Task.ID, r.Due, strconv.Itoa(r.Attempt))
	if r.Notice = notice == 1; r.Notice {
		r.ID = runID(r.Task.ID, r.Due, noticeAttempt)
	}
	return r, nil
}

func (s *Store) runs(ctx context.Context, where string, args ...any) ([]Run, error) {
	return store.List(ctx, s.db, scanRun, `SELECT `+runColumns+` FROM job_run r JOIN task t ON t.id = r.task WHERE `+where, args...)
}

// Wanted reports whether the run id is still to be done, and marks it started. It must be open, its
// task active, and its room right. A started run stays wanted when it changes its own task.
func (s *Scheduler) Wanted(ctx context.Context, id string) (bool, error) {
	task, due, attempt, err := parseRunID(id)
	if err != nil {
		return false, err
	}
	_, begun := s.started.Load(id)
	var wanted bool
	t, err := scan(s.store.db.QueryRowContext(ctx, `SELECT `+columns+`, CASE WHEN ?3 = ?4 THEN r.notice = 1
		ELSE r.state = 'claimed' AND r.attempt = ?3 AND (?5 OR t.status = 'active') END
		FROM job_run r JOIN task t ON t.id = r.task WHERE r.task = ?1 AND r.due = ?2`, task, due, attempt, noticeAttempt, begun), &wanted)
	if found, err := store.Found(err); !found {
		return false, store.Wrap(err, "look up run %s", id)
	}
	if wanted {
		relocated, err := s.relocate(ctx, t)
		if err != nil || relocated {
			return false, err
		}
		s.started.Store(id, true)
	}
	return wanted, nil
}

// Done records the result of the run id: its answer, or the error. It is durable when it returns, and idempotent.
func (s *Scheduler) Done(ctx context.Context, id, answer string, failed error) error {
	task, due, attempt, err := parseRunID(id)
	if err != nil {
		return err
	}
	wake := false
	err = store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		r, err := scanRun(tx.QueryRowContext(ctx, `SELECT `+runColumns+` FROM job_run r JOIN task t ON t.id = r.task
			WHERE r.task = ? AND r.due = ?`, task, due))
		switch {
		case err != nil: // also if it was deleted since
			return err
		case attempt == noticeAttempt:
			_, err = tx.ExecContext(ctx, `UPDATE job_run SET notice = 2 WHERE task = ? AND due = ?`, task, due)
		case r.State != runClaimed || strconv.Itoa(r.Attempt) != attempt:
		default:
			_, begun := s.started.Load(id)
			wake, err = s.recordResult(ctx, tx, r, begun, answer, failed)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record run %s: %w", id, err)
	}
	s.delivered.Delete(id)
	s.started.Delete(id)
	if wake {
		pace.Wake(s.store.wake)
	}
	return nil
}

// recordResult stores the result of r. wake reports that something is due sooner.
func (s *Scheduler) recordResult(ctx context.Context, tx *sql.Tx, r Run, begun bool, answer string, failed error) (wake bool, err error) {
	now := s.store.now()
	switch {
	case r.Task.Status != Active && !begun:
		return false, closeRun(ctx, tx, r, runSkipped, now, i18n.New("why.task_state", "state", r.Task.Status.text()))
	case errors.Is(failed, ErrStopped):
		if err := closeRun(ctx, tx, r, runSkipped, now, ErrStopped); err != nil {
			return false, err
		}
		return false, s.completeOnce(ctx, tx, r, now, "stopped")
	case failed == nil:
		if err := closeRun(ctx, tx, r, runDone, now, i18n.Text(answer)); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE task
			SET last_run = ?, run_count = run_count + 1, failures = 0, last_result = ? WHERE id = ?`,
			now.UnixMilli(), clip(answer), r.Task.ID); err != nil {
			return false, err
		}
		return false, s.completeOnce(ctx, tx, r, now, "fired")
	case r.Task.Schedule == nil || r.Task.Scheduled.After(r.Claimed): // its schedule was replaced: no retry
		return false, closeRun(ctx, tx, r, runFailed, now, i18n.FromError(failed))
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
	if err := closeRun(ctx, tx, r, runFailed, now, i18n.FromError(failed)); err != nil {
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

// postpone schedules another attempt of r.
func postpone(ctx context.Context, tx *sql.Tx, r Run, at time.Time, failed error) error {
	return store.Exec(ctx, tx, `UPDATE job_run SET attempt = attempt + 1, retry_at = ?, result = ? WHERE task = ? AND due = ?`,
		at.UnixMilli(), clip(failed.Error()), r.Task.ID, r.Due.UnixMilli())
}

// closeRun ends r and deletes the oldest runs of its task beyond maxStoredRuns.
func closeRun(ctx context.Context, tx *sql.Tx, r Run, state RunState, now time.Time, result i18n.Text) error {
	if _, err := tx.ExecContext(ctx, `UPDATE job_run SET state = ?, ended = ?, retry_at = NULL, result = ? WHERE task = ? AND due = ?`,
		state, now.UnixMilli(), clip(string(result)), r.Task.ID, r.Due.UnixMilli()); err != nil {
		return err
	}
	return store.Exec(ctx, tx, `DELETE FROM job_run WHERE task = ?1 AND state <> 'claimed' AND notice <> 1 AND due <
		(SELECT due FROM job_run WHERE task = ?1 ORDER BY due DESC LIMIT 1 OFFSET ?2)`, r.Task.ID, maxStoredRuns-1)
}

func (s *Scheduler) completeOnce(ctx context.Context, tx *sql.Tx, r Run, now time.Time, word string) error {
	if r.Task.Schedule == nil || r.Task.Schedule.Type != once || !r.Task.NextDue.IsZero() {
		return nil
	}
	reason := word + " at " + now.In(s.store.locationOf(r.Task)).Format("2006-01-02 15:04")
	return store.Exec(ctx, tx, `UPDATE task SET status = 'completed', reason = ?, completed = ?, updated = ?
		WHERE id = ? AND status = 'active'`,
		reason, now.UnixMilli(), now.UnixMilli(), r.Task.ID)
}

func clip(result string) string {
	return text.Cut(strings.TrimSpace(result), maxResult)
}
