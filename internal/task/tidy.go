package task

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// TidyKind is a clean-up of an active task. It never touches a schedule or removes a row.
type TidyKind string

// The kinds of tidying, for tasks without a schedule and without a prompt only.
const (
	TidyMerge TidyKind = "merge" // delete a duplicate of another task
	TidyPause TidyKind = "pause" // pause a task not mentioned for a long time
)

// TidyStep is one planned clean-up. It is skipped if the task changed since the plan was made.
type TidyStep struct {
	Kind     TidyKind
	Room, ID string
	Updated  time.Time // of the task when the plan was made
	Reason   string
	Into     string    // for TidyMerge: the task that is kept,
	IntoAt   time.Time // and when that was updated
}

// TidyResult is an applied step, with the changed columns before and after as JSON.
type TidyResult struct {
	TidyStep
	Before, After string
}

// tidySnapshot selects the columns that a step changes, as JSON.
const tidySnapshot = `json_object('status', status, 'reason', reason, 'updated', updated)`

// ApplyTidySteps applies steps within tx and returns those applied. It skips a step whose task has changed,
// has a schedule or is in another room.
func (s *Store) ApplyTidySteps(ctx context.Context, tx *sql.Tx, now time.Time, steps []TidyStep) (done []TidyResult, err error) {
	for _, t := range steps {
		d, err := tidyOne(ctx, tx, now, t)
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

// tidyOne applies t. It returns sql.ErrNoRows if the task has changed since the plan was made.
func tidyOne(ctx context.Context, tx *sql.Tx, now time.Time, t TidyStep) (TidyResult, error) {
	d := TidyResult{TidyStep: t}
	where, args := ``, []any{t.ID, t.Room, t.Updated.UnixMilli()}
	if t.Kind == TidyMerge {
		where = ` AND EXISTS (SELECT 1 FROM task AS o WHERE o.id = ? AND o.id <> task.id
			AND o.room = task.room AND o.user = task.user AND o.readers = task.readers AND o.status = 'active' AND o.updated = ?)`
		args = append(args, t.Into, t.IntoAt.UnixMilli())
	}
	err := tx.QueryRowContext(ctx, `SELECT `+tidySnapshot+` FROM task
		WHERE id = ? AND room = ? AND status = 'active' AND updated = ? AND schedule = '' AND prompt = ''`+where, args...).Scan(&d.Before)
	if err != nil {
		return d, err
	}
	status := map[TidyKind]Status{TidyMerge: Deleted, TidyPause: Paused}[t.Kind]
	err = tx.QueryRowContext(ctx, `UPDATE task SET status = ?, reason = ?, updated = ? WHERE id = ? RETURNING `+tidySnapshot,
		status, t.Reason, now.UnixMilli(), t.ID).Scan(&d.After)
	if err == nil && t.Kind == TidyMerge { // the kept task is trusted as the less trusted of both
		_, err = tx.ExecContext(ctx, `UPDATE task SET integrity = min(integrity, (SELECT o.integrity FROM task AS o WHERE o.id = ?))
			WHERE id = ?`, t.ID, t.Into)
	}
	return d, err
}

// UndoTidy restores the tasks of done, newest first, within tx. It returns the IDs of tasks changed
// since, which it leaves as they are.
func (s *Store) UndoTidy(ctx context.Context, tx *sql.Tx, done []TidyResult) (skipped []string, err error) {
	for _, d := range slices.Backward(done) {
		back, err := tx.ExecContext(ctx, `UPDATE task SET status = ?1 ->> 'status', reason = ?1 ->> 'reason',
			updated = iif(updated = ?2 ->> 'updated', ?1 ->> 'updated', updated)
			WHERE id = ?3 AND status = ?2 ->> 'status' AND reason = ?2 ->> 'reason'`, d.Before, d.After, d.ID)
		n := int64(0)
		if err == nil {
			n, err = back.RowsAffected()
		}
		if err != nil {
			return nil, fmt.Errorf("restore task #%s: %w", d.ID, err)
		}
		if n == 0 {
			skipped = append(skipped, d.ID)
		}
	}
	return skipped, nil
}
