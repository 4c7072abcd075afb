package task

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// TidyKind is what is done to an active task while nobody talks. None touches a
// schedule, and none removes a row.
type TidyKind string

// The kinds of tidying, for tasks without a schedule and without a prompt only.
const (
	TidyMerge TidyKind = "merge" // another one asks for the same, and stays
	TidyPause TidyKind = "pause" // nobody has spoken of it for long
)

// Tidying is one step of a plan, with what the plan was made for: if the task has
// changed since, nothing is done.
type Tidying struct {
	Kind     TidyKind
	Room, ID string
	Updated  time.Time // of the task, as the plan saw it
	Reason   string
	Into     string    // for TidyMerge: the task that stays,
	IntoAt   time.Time // and when that was updated
}

// Tidied is a step that was done, with what it touched of the task before and after, as JSON.
type Tidied struct {
	Tidying
	Before, After string
}

// touched is what a step changes of a task, as JSON.
const touched = `json_object('status', status, 'reason', reason, 'updated', updated)`

// Tidy does steps within tx and returns those that were done. One that does not fit
// the task as it is now, or would touch a schedule or another room, is left out.
func (s *Store) Tidy(ctx context.Context, tx *sql.Tx, now time.Time, steps []Tidying) (done []Tidied, err error) {
	for _, t := range steps {
		d, err := tidy(ctx, tx, now, t)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return nil, fmt.Errorf("tidy task #%s: %w", t.ID, err)
		default:
			done = append(done, d)
		}
	}
	return done, nil
}

// tidy does one step if the task is as the plan had it; else it is sql.ErrNoRows.
func tidy(ctx context.Context, tx *sql.Tx, now time.Time, t Tidying) (Tidied, error) {
	d := Tidied{Tidying: t}
	where, args := ``, []any{t.ID, t.Room, t.Updated.UnixMilli()}
	if t.Kind == TidyMerge {
		where = ` AND EXISTS (SELECT 1 FROM task AS o WHERE o.id = ? AND o.id <> task.id
			AND o.room = task.room AND o.user = task.user AND o.readers = task.readers AND o.status = 'active' AND o.updated = ?)`
		args = append(args, t.Into, t.IntoAt.UnixMilli())
	}
	err := tx.QueryRowContext(ctx, `SELECT `+touched+` FROM task
		WHERE id = ? AND room = ? AND status = 'active' AND updated = ? AND schedule = '' AND prompt = ''`+where, args...).Scan(&d.Before)
	if err != nil {
		return d, err
	}
	status := map[TidyKind]Status{TidyMerge: Deleted, TidyPause: Paused}[t.Kind]
	err = tx.QueryRowContext(ctx, `UPDATE task SET status = ?, reason = ?, updated = ? WHERE id = ? RETURNING `+touched,
		status, t.Reason, now.UnixMilli(), t.ID).Scan(&d.After)
	if err == nil && t.Kind == TidyMerge { // the task that stays stands for both
		_, err = tx.ExecContext(ctx, `UPDATE task SET integrity = min(integrity, (SELECT o.integrity FROM task AS o WHERE o.id = ?))
			WHERE id = ?`, t.ID, t.Into)
	}
	return d, err
}

// Untidy gives the tasks of done, the newest last, what they had, within tx. One that
// somebody resumed, completed or deleted since is left as it is, and named.
func (s *Store) Untidy(ctx context.Context, tx *sql.Tx, done []Tidied) (left []string, err error) {
	for _, d := range slices.Backward(done) {
		back, err := tx.ExecContext(ctx, `UPDATE task SET status = ?1 ->> 'status', reason = ?1 ->> 'reason',
			updated = iif(updated = ?2 ->> 'updated', ?1 ->> 'updated', updated)
			WHERE id = ?3 AND status = ?2 ->> 'status' AND reason = ?2 ->> 'reason'`, d.Before, d.After, d.ID)
		n := int64(0)
		if err == nil {
			n, err = back.RowsAffected()
		}
		if err != nil {
			return nil, fmt.Errorf("give back task #%s: %w", d.ID, err)
		}
		if n == 0 {
			left = append(left, d.ID)
		}
	}
	return left, nil
}
