package task

import (
	"context"
	"fmt"
)

// Move gives all tasks of the room from, done ones included, to the room to. It
// can be repeated.
func (s *Store) Move(ctx context.Context, from, to string) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE task SET room = ? WHERE room = ?`, to, from); err != nil {
		return fmt.Errorf("move tasks: %w", err)
	}
	return nil
}
