package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// How many active tasks the model works on at most, and how often in 24 hours.
const (
	DefaultPerRoom    = 20
	DefaultPerPerson  = 20
	DefaultRunsPerDay = 500
)

const day = 24 * time.Hour

// BoundError means that a room or a person has as many active tasks for the model as it may have.
type BoundError struct {
	Most   int
	Person string // "" = the room has them
}

func (e *BoundError) Error() string {
	whose := "this room has"
	if e.Person != "" {
		whose = e.Person + " has, over all rooms,"
	}
	return fmt.Sprintf("%s %d active tasks with a schedule and an ai_prompt, and no more are allowed: tell the person so, "+
		"who can have one of them completed, paused or deleted first; a reminder without ai_prompt is possible", whose, e.Most)
}

// checkBounds refuses another active task that the model works on by a schedule.
// The task with the id except is not counted.
func (s *Store) checkBounds(ctx context.Context, db store.DBTX, room, user, except string) error {
	var inRoom, ofUser int
	err := db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE room = ?1), count(*) FILTER (WHERE user = ?2 AND ?2 <> '')
		FROM task WHERE status = 'active' AND schedule <> '' AND prompt <> '' AND id <> ?3`, room, user, except).Scan(&inRoom, &ofUser)
	switch {
	case err != nil:
		return fmt.Errorf("count tasks: %w", err)
	case inRoom >= s.PerRoom:
		return &BoundError{Most: s.PerRoom}
	case ofUser >= s.PerPerson:
		return &BoundError{Most: s.PerPerson, Person: user}
	}
	return nil
}

// putOff begins the result of a run that waits because of RunsPerDay.
const putOff = "put off: as many runs of tasks used the model in 24 hours as may: "

// dailyRuns counts the runs of the last 24 hours that the model works on.
type dailyRuns struct {
	known bool
	at    []time.Time          // when each was handed over, in order
	told  map[string]time.Time // when a room was told that its runs are put off
}

// load reads from the database what ran before this program started.
func (d *dailyRuns) load(ctx context.Context, s *Scheduler, now time.Time) error {
	if d.known {
		return nil
	}
	d.told = map[string]time.Time{}
	ended, err := store.Column[int64](ctx, s.store.db, `SELECT r.ended FROM job_run r JOIN task t ON t.id = r.task
		WHERE r.state IN ('done', 'failed') AND t.prompt <> '' AND r.ended > ? ORDER BY r.ended`, now.Add(-day).UnixMilli())
	if err != nil {
		return fmt.Errorf("count runs of the last day: %w", err)
	}
	for _, ms := range ended {
		d.at = append(d.at, time.UnixMilli(ms))
	}
	d.known = true
	return nil
}

// next returns when another run may begin; now or earlier if one may.
func (d *dailyRuns) next(now time.Time, most int) time.Time {
	d.at = slices.DeleteFunc(d.at, func(at time.Time) bool { return now.Sub(at) >= day || at.After(now) }) // the clock may have been wrong
	if len(d.at) < most {
		return now
	}
	return d.at[len(d.at)-most].Add(day)
}

// putOff reports whether r has to wait because the model worked on enough tasks, and has
// it wait. Its room is told once a day.
func (s *Scheduler) putOff(ctx context.Context, r Run, now time.Time) (bool, error) {
	if r.Notice || r.Task.Mode() == Reminder {
		return false, nil
	}
	if err := s.ran.load(ctx, s, now); err != nil {
		return false, err
	}
	next := s.ran.next(now, s.RunsPerDay)
	if !next.After(now) {
		return false, nil
	}
	tell := now.Sub(s.ran.told[r.Task.Room]) >= day
	_, err := s.store.db.ExecContext(ctx, `UPDATE job_run SET retry_at = ?, result = ?, notice = iif(?, 1, notice)
		WHERE task = ? AND due = ? AND state = 'claimed'`,
		next.UnixMilli(), putOff+strconv.Itoa(s.RunsPerDay), tell, r.Task.ID, r.Due.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("put off run %s: %w", r.ID, err)
	}
	if tell {
		s.ran.told[r.Task.Room] = now
		s.log.Warn("as many runs of tasks used the model as may in 24 hours (tasks.runs_per_day); nothing is lost, the others run later",
			"runs", s.RunsPerDay, "again", next)
	}
	return true, nil
}

// putOffText is the notice that r waits because of RunsPerDay.
func (s *Store) putOffText(r Run, name string, say i18n.Say) string {
	return say("task.put_off", "who", name, "task", r.Task.Content, "most", string(r.Result[len(putOff):]), "at", s.WhenIn(say, r.Task, r.Retry))
}
