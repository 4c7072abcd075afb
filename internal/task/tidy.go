package task

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/store"
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

// Tidied is a step that was done, with the task's row before and after as JSON.
type Tidied struct {
	Tidying
	Before, After string
}

// Tidy does steps within tx and returns those that were done. One that does not fit
// the task as it is now, or would touch a schedule or another room, is left out.
func (s *Store) Tidy(ctx context.Context, tx *sql.Tx, now time.Time, steps []Tidying) ([]Tidied, error) {
	var done []Tidied
	for _, step := range steps {
		before, err := image(ctx, tx, step.ID)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tidy task #%s: %w", step.ID, err)
		}
		ok, err := tidy(ctx, tx, now, step)
		if err != nil {
			return nil, fmt.Errorf("tidy task #%s: %w", step.ID, err)
		}
		if !ok {
			continue
		}
		after, err := image(ctx, tx, step.ID)
		if err != nil {
			return nil, fmt.Errorf("tidy task #%s: %w", step.ID, err)
		}
		done = append(done, Tidied{step, before, after})
	}
	return done, nil
}

// tidy does one step if the task is as the plan had it.
func tidy(ctx context.Context, tx *sql.Tx, now time.Time, t Tidying) (bool, error) {
	status, where := map[TidyKind]Status{TidyMerge: Deleted, TidyPause: Paused}[t.Kind], ``
	args := []any{status, t.Reason, now.UnixMilli(), t.ID, t.Room, t.Updated.UnixMilli()}
	if t.Kind == TidyMerge {
		where = ` AND EXISTS (SELECT 1 FROM task AS o WHERE o.id = ? AND o.id <> task.id
			AND o.room = task.room AND o.user = task.user AND o.readers = task.readers AND o.status = 'active' AND o.updated = ?)`
		args = append(args, t.Into, t.IntoAt.UnixMilli())
	}
	done, err := tx.ExecContext(ctx, `UPDATE task SET status = ?, reason = ?, updated = ?
		WHERE id = ? AND room = ? AND status = 'active' AND updated = ? AND schedule = '' AND prompt = ''`+where, args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if err != nil || n == 0 || t.Kind != TidyMerge {
		return n > 0, err
	}
	// The task that stays stands for both.
	_, err = tx.ExecContext(ctx, `UPDATE task SET integrity = min(integrity, (SELECT o.integrity FROM task AS o WHERE o.id = ?))
		WHERE id = ?`, t.ID, t.Into)
	return true, err
}

// Untidy gives the tasks of done, the newest last, what they had, within tx. One that
// somebody resumed, completed or deleted since is left as it is, and named.
func (s *Store) Untidy(ctx context.Context, tx *sql.Tx, done []Tidied) (left []string, err error) {
	for _, d := range slices.Backward(done) {
		back, err := tx.ExecContext(ctx, `UPDATE task SET status = ?1 ->> 'status', reason = ?1 ->> 'reason', completed = ?1 ->> 'completed',
			priority = iif(priority = ?2 ->> 'priority', ?1 ->> 'priority', priority), content = iif(content = ?2 ->> 'content', ?1 ->> 'content', content),
			updated = iif(updated = ?2 ->> 'updated', ?1 ->> 'updated', updated)
			WHERE id = ?3 AND status = ?2 ->> 'status' AND reason = ?2 ->> 'reason'`, d.Before, d.After, d.ID)
		if err != nil {
			return nil, fmt.Errorf("give back task #%s: %w", d.ID, err)
		}
		if n, err := back.RowsAffected(); err != nil {
			return nil, fmt.Errorf("give back task #%s: %w", d.ID, err)
		} else if n == 0 {
			left = append(left, d.ID)
		}
	}
	return left, nil
}

// image is the row of a task as JSON, with whatever columns it has but those that are
// worked out.
func image(ctx context.Context, tx *sql.Tx, id string) (string, error) {
	pairs, err := store.Column[string](ctx, tx, `SELECT '''' || name || ''', "' || name || '"' FROM pragma_table_info('task')`)
	if err != nil {
		return "", err
	}
	var text string
	err = tx.QueryRowContext(ctx, `SELECT json_object(`+strings.Join(pairs, ", ")+`) FROM task WHERE id = ?`, id).Scan(&text)
	return text, err
}
