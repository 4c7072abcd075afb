package task

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// ErrOutage is why a run fails that had no model to work with. The task cannot help
// it: such failures do not count towards those that pause it.
var ErrOutage = errors.New("no language model could be reached")

const (
	outageLimit = 24 * time.Hour // from when the run was found to be due
	// gaveUp begins the result of a run that was given up for it.
	gaveUp = "given up after a day: "
)

// outage has r tried again, or gives it up when that went on for a day; again tells
// that the scheduler has to look. However often the clock jumped or the program was
// down, it is tried a few times.
func (s *Scheduler) outage(ctx context.Context, tx *sql.Tx, r Run, now time.Time, failed error) (again bool, err error) {
	if now.Sub(r.Claimed) < outageLimit || r.Attempt < maxFailed {
		return true, postpone(ctx, tx, r, now.Add(backOff[len(backOff)-1]), failed)
	}
	if err := end(ctx, tx, r, RunFailed, now, i18n.Text(gaveUp+failed.Error())); err != nil {
		return false, err
	}
	told, err := toldOfOutage(ctx, tx, r)
	if err != nil {
		return false, err
	}
	if r.Task.NextDue.IsZero() { // nothing more would come of it
		if _, err := tx.ExecContext(ctx, `UPDATE task SET status = 'paused', reason = ?, updated = ? WHERE id = ? AND status = 'active'`,
			"no language model could be reached for a day", now.UnixMilli(), r.Task.ID); err != nil {
			return false, err
		}
	} else if told {
		return false, nil
	}
	_, err = tx.ExecContext(ctx, `UPDATE job_run SET notice = 1 WHERE task = ? AND due = ?`, r.Task.ID, r.Due.UnixMilli())
	return true, err
}

// toldOfOutage reports whether the run before r was given up for an outage as well:
// it is still the same one.
func toldOfOutage(ctx context.Context, tx *sql.Tx, r Run) (bool, error) {
	var result string
	err := tx.QueryRowContext(ctx, `SELECT result FROM job_run WHERE task = ? AND due < ? AND state IN ('done', 'failed') ORDER BY due DESC LIMIT 1`,
		r.Task.ID, r.Due.UnixMilli()).Scan(&result)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return strings.HasPrefix(result, gaveUp), err
}

// postpone has r tried again at that time, as another attempt.
func postpone(ctx context.Context, tx *sql.Tx, r Run, at time.Time, failed error) error {
	_, err := tx.ExecContext(ctx, `UPDATE job_run SET attempt = attempt + 1, retry_at = ?, result = ? WHERE task = ? AND due = ?`,
		at.UnixMilli(), clip(failed.Error()), r.Task.ID, r.Due.UnixMilli())
	return err
}

// outageText is the notice that r was given up for an outage.
func (s *Store) outageText(r Run, name string, say i18n.Say) string {
	text := say("task.outage", "who", name, "task", r.Task.Content) + "\n"
	if r.Task.NextDue.IsZero() {
		return text + say("task.outage_paused")
	}
	return text + say("task.outage_next", "at", s.WhenIn(say, r.Task, r.Due), "next", s.WhenIn(say, r.Task, r.Task.NextDue))
}
