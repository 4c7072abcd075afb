package task

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reverie/internal/store"
)

// Defaults for active tasks with a prompt, and for their runs in 24 hours.
const (
	DefaultPerRoom    = 20
	DefaultPerPerson  = 20
	DefaultRunsPerDay = 500
)

const day = 24 * time.Hour

// limitError means that a room or person reached a limit of tasks. It counts active tasks with a
// prompt.
type limitError struct {
	Most   int
	Person string // "" = the room has them
}

func (e *limitError) Error() string {
	whose := "this room has"
	if e.Person != "" {
		whose = e.Person + " has, over all rooms,"
	}
	return fmt.Sprintf("%s %d active tasks with a schedule and an ai_prompt, and no more are allowed: tell the person so, "+
		"who can have one of them completed, paused or deleted first; a reminder without ai_prompt is possible", whose, e.Most)
}

// checkLimits returns a limitError if one more scheduled task with a prompt exceeds a limit. The
// task except is not counted.
func (s *Store) checkLimits(ctx context.Context, db store.DBTX, room, user, except string) error {
	var inRoom, ofUser int
	err := db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE room = ?1), count(*) FILTER (WHERE user = ?2 AND ?2 <> '')
		FROM task WHERE status = 'active' AND schedule <> '' AND prompt <> '' AND id <> ?3`, room, user, except).Scan(&inRoom, &ofUser)
	switch {
	case err != nil:
		return fmt.Errorf("count tasks: %w", err)
	case inRoom >= s.cfg.PerRoom:
		return &limitError{Most: s.cfg.PerRoom}
	case ofUser >= s.cfg.PerPerson:
		return &limitError{Most: s.cfg.PerPerson, Person: user}
	}
	return nil
}

// deferOverLimit postpones r if the limit of model runs in 24 hours is reached. It reports whether
// it did.
func (s *Scheduler) deferOverLimit(ctx context.Context, r Run, now time.Time) (bool, error) {
	if r.Notice || r.Task.Mode() == Reminder {
		return false, nil
	}
	if s.runTimes == nil { // load the runs from before the start
		ended, err := store.Column[int64](ctx, s.store.db, `SELECT r.ended FROM job_run r JOIN task t ON t.id = r.task
			WHERE r.state IN ('done', 'failed') AND t.prompt <> '' AND r.ended > ? ORDER BY r.ended`, now.Add(-day).UnixMilli())
		if err != nil {
			return false, fmt.Errorf("count runs of the last day: %w", err)
		}
		s.runTimes = make([]time.Time, len(ended))
		for i, ms := range ended {
			s.runTimes[i] = time.UnixMilli(ms)
		}
	}
	s.runTimes = slices.DeleteFunc(s.runTimes, func(at time.Time) bool {
		return now.Sub(at) >= day || at.After(now) // the clock may have been wrong
	})
	limit := s.store.cfg.RunsPerDay
	if len(s.runTimes) < limit {
		return false, nil
	}
	next := s.runTimes[len(s.runTimes)-limit].Add(day)
	result := fmt.Sprintf("put off: tasks used the model %d times in 24 hours", limit)
	if _, err := s.store.db.ExecContext(ctx, `UPDATE job_run SET retry_at = ?, result = ? WHERE task = ? AND due = ? AND state = 'claimed'`,
		next.UnixMilli(), result, r.Task.ID, r.Due.UnixMilli()); err != nil {
		return false, fmt.Errorf("put off run %s: %w", r.ID, err)
	}
	s.cfg.Log.Warn("daily limit of model runs for tasks reached (tasks.runs_per_day); this run is postponed",
		"runs", limit, "task", r.Task.ID, "again", next)
	return true, nil
}
