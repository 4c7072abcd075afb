package task

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// locationOf returns the time zone of t's schedule, or the configured one.
func (s *Store) locationOf(t Task) *time.Location {
	if t.Schedule == nil {
		return s.cfg.Location
	}
	return t.Schedule.location(s.cfg.Location)
}

// dueColumns returns the columns scheduled and next_due for a new schedule; nil without one.
func (s *Store) dueColumns(schedule *Schedule, now time.Time) (scheduled, due any) {
	if schedule == nil {
		return nil, nil
	}
	return now.UnixMilli(), s.nextDueColumn(*schedule, now, now)
}

// nextDueColumn returns the column next_due after now, as Unix milliseconds or nil.
func (s *Store) nextDueColumn(schedule Schedule, now, since time.Time) any {
	next, ok := schedule.Next(now, time.UnixMilli(since.UnixMilli()), s.cfg.Location)
	if !ok {
		return nil
	}
	return next.UnixMilli()
}

// Resume reactivates a paused task from the next time of its schedule. Times missed while paused do not run.
func (s *Store) Resume(ctx context.Context, at trust.Place, id string) (Task, error) {
	now := s.now()
	return s.editInTx(ctx, func(tx *sql.Tx) (Task, error) {
		t, err := getReadable(ctx, tx, at, store.NormalizeID(id))
		if err != nil {
			return Task{}, err
		}
		var due any
		if t.Schedule != nil && t.Status == Paused {
			if due = s.nextDueColumn(*t.Schedule, now, t.Scheduled); due == nil {
				return Task{}, fmt.Errorf("the time of task #%s has passed (%s): give it a new schedule first", t.ID, t.Schedule)
			}
			if t.Prompt != "" {
				if err := s.checkLimit(ctx, tx, t.User, t.ID); err != nil {
					return Task{}, err
				}
			}
		}
		return s.updateRow(ctx, tx, now, at, id, "resumed", isPaused, `status = 'active', failures = 0, reason = '', next_due = ?`, due)
	})
}

// maxCatchUp is how many missed times of a task run at most.
const maxCatchUp = 24

// missedTimes lists the last n due times from t.NextDue until now, oldest first.
func (s *Store) missedTimes(t Task, now time.Time, n int) []time.Time {
	var times []time.Time
	next, ok := t.Schedule.Next(t.NextDue.Add(-1), t.Scheduled, s.cfg.Location)
	for ok && !next.After(now) {
		times = append(times[max(0, len(times)-n+1):], next)
		next, ok = t.Schedule.Next(next, t.Scheduled, s.cfg.Location)
	}
	if len(times) == 0 { // the zone changed meanwhile: run at the stored time
		return []time.Time{t.NextDue}
	}
	return times
}
