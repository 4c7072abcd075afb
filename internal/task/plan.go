package task

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// poke lets the scheduler look again.
func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// in is the zone in which t is to be told of times: its schedule's, or the usual one.
func (s *Store) in(t Task) *time.Location {
	if t.Schedule == nil {
		return s.cfg.Location
	}
	return t.Schedule.in(s.cfg.Location)
}

// plan is what the columns scheduled and next_due hold for a schedule that is made
// now; nil where there is none.
func (s *Store) plan(schedule *Schedule, now time.Time) (scheduled, due any) {
	if schedule == nil {
		return nil, nil
	}
	return now.UnixMilli(), s.due(*schedule, now, now)
}

// due is the column next_due, looked at after now.
func (s *Store) due(schedule Schedule, now, since time.Time) any {
	next, ok := schedule.Next(now, time.UnixMilli(since.UnixMilli()), s.cfg.Location)
	if !ok {
		return nil
	}
	return next.UnixMilli()
}

// Resume makes a paused task active again. It goes on with the next time of its
// schedule: what it missed while it was paused is not made up for.
func (s *Store) Resume(ctx context.Context, at trust.Place, id string) (Task, error) {
	now := s.now()
	return s.edit(ctx, func(tx *sql.Tx) (Task, error) {
		t, err := get(ctx, tx, at, store.NormalizeID(id))
		if err != nil {
			return Task{}, err
		}
		var due any
		if t.Schedule != nil && t.Status == Paused {
			if due = s.due(*t.Schedule, now, t.Scheduled); due == nil {
				return Task{}, fmt.Errorf("the time of task #%s has passed (%s): give it a new schedule first", t.ID, t.Schedule)
			}
			if t.Prompt != "" {
				if err := s.checkBounds(ctx, tx, t.Room, t.User, t.ID); err != nil {
					return Task{}, err
				}
			}
		}
		return s.change(ctx, tx, now, at, id, "resumed", isPaused, `status = 'active', failures = 0, reason = '', next_due = ?`, due)
	})
}

// maxCatchUp is how many missed times of a task run at most.
const maxCatchUp = 24

// missed lists the last n times of t from its next due one until now, the oldest first.
func (s *Store) missed(t Task, now time.Time, n int) []time.Time {
	var times []time.Time
	next, ok := t.Schedule.Next(t.NextDue.Add(-1), t.Scheduled, s.cfg.Location)
	for ok && !next.After(now) {
		times = append(times[max(0, len(times)-n+1):], next)
		next, ok = t.Schedule.Next(next, t.Scheduled, s.cfg.Location)
	}
	if len(times) == 0 { // the schedule has other ideas now, of a zone that has changed: what was promised counts
		return []time.Time{t.NextDue}
	}
	return times
}
