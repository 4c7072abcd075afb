package task

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/store"
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

// InRoom returns the tasks of a room in one state, as List does, whoever may read them. It is
// for the operator and for work that says nothing in rooms.
func (s *Store) InRoom(ctx context.Context, room string, status Status) ([]Task, error) {
	where, args, err := inState(status)
	if err != nil {
		return nil, err
	}
	return s.query(ctx, `room = ?`+where, append([]any{room}, args...)...)
}

// AllRuns lists the last n runs of a room, or of one task, the latest first. An empty room
// means all. It is for the operator.
func (s *Store) AllRuns(ctx context.Context, room, id string, n int) ([]Run, error) {
	return s.runs(ctx, `(?1 = '' OR t.room = ?1) AND (?2 = '' OR t.id = ?2) AND t.status <> 'deleted' ORDER BY r.due DESC, t.id LIMIT ?3`, room, bareID(id), n)
}

// Rooms lists the rooms that have tasks which are not deleted.
func (s *Store) Rooms(ctx context.Context) ([]string, error) {
	all, err := store.Column[string](ctx, s.db, `SELECT DISTINCT room FROM task WHERE status <> 'deleted' ORDER BY room`)
	if err != nil {
		return nil, fmt.Errorf("list rooms with tasks: %w", err)
	}
	return all, nil
}
