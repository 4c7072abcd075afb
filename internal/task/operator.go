package task

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Find returns the task id of whatever room; it is for the operator.
func (s *Store) Find(ctx context.Context, id string) (Task, error) {
	id = bareID(id)
	t, err := scan(s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM task WHERE id = ? AND status <> 'deleted'`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, fmt.Errorf("no task #%s: `bot task list --all` shows them (%w)", id, ErrNotFound)
	}
	if err != nil {
		return Task{}, fmt.Errorf("find task #%s: %w", id, err)
	}
	return t, nil
}

// InRoom returns the tasks of a room in one state, as List does, whoever may read them; room "" = those of
// all rooms, room by room. It is for the operator and for work that says nothing in rooms.
func (s *Store) InRoom(ctx context.Context, room string, status Status) ([]Task, error) {
	where, args, err := inState(status)
	if err != nil {
		return nil, err
	}
	return s.query(ctx, `(? = '' OR room = ?)`+where, append([]any{room, room}, args...)...)
}

// AllRuns lists the last n runs of a room, or of one task, the latest first. An empty room
// means all. It is for the operator.
func (s *Store) AllRuns(ctx context.Context, room, id string, n int) ([]Run, error) {
	return s.runs(ctx, `(?1 = '' OR t.room = ?1) AND (?2 = '' OR t.id = ?2) AND t.status <> 'deleted' ORDER BY r.due DESC, t.id LIMIT ?3`, room, bareID(id), n)
}
