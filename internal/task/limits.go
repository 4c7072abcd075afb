package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"reverie/internal/store"
)

// Defaults for active tasks with a prompt, and for their runs in 24 hours.
const (
	DefaultPerPerson  = 20
	DefaultRunsPerDay = 500
)

const day = 24 * time.Hour

// checkLimit returns an error if user has the most scheduled tasks with a prompt, over all rooms.
// Those of the program itself, whose user is "", count together. The task except is not counted.
func (s *Store) checkLimit(ctx context.Context, db store.DBTX, user, except string) error {
	n, err := store.Value[int](ctx, db, `SELECT count(*) FROM task
		WHERE status = 'active' AND schedule <> '' AND prompt <> '' AND user = ? AND id <> ?`, user, except)
	if err == nil && n >= s.cfg.PerPerson {
		return fmt.Errorf("%s has %d active tasks with a schedule and an ai_prompt over all rooms, and no more are allowed: tell the "+
			"person so, who can have one of them completed, paused or deleted first; a reminder without ai_prompt is possible",
			cmp.Or(user, "nobody in particular"), n)
	}
	return store.Wrap(err, "count tasks")
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
