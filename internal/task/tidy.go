package task

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
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

// The kinds of tidying. All but TidyPriority are for tasks without a schedule and
// without a prompt only.
const (
	TidyComplete TidyKind = "complete" // somebody said that it is done
	TidyPriority TidyKind = "priority" // it is more or less urgent
	TidyContent  TidyKind = "rephrase" // the same in fewer words
	TidyMerge    TidyKind = "merge"    // another one asks for the same, and stays
	TidyPause    TidyKind = "pause"    // nobody has spoken of it for long
)

// Tidying is one step of a plan, with what the plan was made for: if the task has
// changed since, nothing is done.
type Tidying struct {
	Kind     TidyKind
	Room, ID string
	Updated  time.Time // of the task, as the plan saw it
	Priority int       // for TidyPriority
	Content  string    // for TidyContent
	Reason   string    // for TidyComplete, TidyMerge and TidyPause
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
	const plain = ` AND schedule = '' AND prompt = ''`
	var set, where string
	var args []any
	switch t.Kind {
	case TidyComplete:
		reason, err := oneLine("reason", t.Reason, maxReason)
		if err != nil || reason == "" {
			return false, err
		}
		set, where, args = `status = 'completed', completed = ?, reason = ?`, plain, []any{now.UnixMilli(), reason}
	case TidyPriority:
		if checkPriority(t.Priority) != nil {
			return false, nil
		}
		set, args = `priority = ?`, []any{t.Priority}
	case TidyContent:
		content, err := checkContent(t.Content)
		if err != nil {
			return false, nil
		}
		set, where, args = `content = ?`, plain, []any{content}
	case TidyMerge:
		set, where, args = `status = 'deleted', reason = ?`, plain, []any{t.Reason}
	case TidyPause:
		set, where, args = `status = 'paused', reason = ?`, plain, []any{t.Reason}
	default:
		return false, fmt.Errorf("%q is nothing to do to a task", t.Kind)
	}
	args = append(args, now.UnixMilli(), t.ID, t.Room, t.Updated.UnixMilli())
	if t.Kind == TidyMerge {
		where += ` AND EXISTS (SELECT 1 FROM task AS o WHERE o.id = ? AND o.id <> task.id
			AND o.room = task.room AND o.user = task.user AND o.readers = task.readers AND o.status = 'active' AND o.updated = ?)`
		args = append(args, t.Into, t.IntoAt.UnixMilli())
	}
	done, err := tx.ExecContext(ctx, `UPDATE task SET `+set+`, updated = ? WHERE id = ? AND room = ? AND status = 'active' AND updated = ?`+where, args...)
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

// Untidy gives the tasks of done, the newest last, the rows that they had, within tx. A
// task that was changed otherwise since keeps that change; one of which the same was
// changed is left as it is, and named.
func (s *Store) Untidy(ctx context.Context, tx *sql.Tx, done []Tidied) (left []string, err error) {
	for _, d := range slices.Backward(done) {
		ok, err := untidy(ctx, tx, d)
		if err != nil {
			return nil, fmt.Errorf("give back task #%s: %w", d.ID, err)
		}
		if !ok {
			left = append(left, d.ID)
		}
	}
	return left, nil
}

func untidy(ctx context.Context, tx *sql.Tx, d Tidied) (bool, error) {
	text, err := image(ctx, tx, d.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err1 := fields(text)
	before, err2 := fields(d.Before)
	after, err3 := fields(d.After)
	if err := errors.Join(err1, err2, err3); err != nil {
		return false, err
	}
	var set []string
	var args []any
	for name, was := range before {
		switch {
		case was == after[name]:
			continue
		case now[name] == after[name]:
		case name == "updated": // it was changed since, but not in this
			continue
		default:
			return false, nil
		}
		set = append(set, `"`+name+`" = ?`)
		if n, ok := was.(json.Number); ok {
			i, err := n.Int64()
			if err != nil {
				return false, err
			}
			was = i
		}
		args = append(args, was)
	}
	if len(set) == 0 {
		return false, nil
	}
	_, err = tx.ExecContext(ctx, `UPDATE task SET `+strings.Join(set, ", ")+` WHERE id = ?`, append(args, d.ID)...)
	return true, err
}

func fields(image string) (map[string]any, error) {
	out := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader([]byte(image)))
	dec.UseNumber()
	return out, dec.Decode(&out)
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
