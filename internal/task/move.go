package task

import (
	"context"
	"fmt"
)

// movedReaders makes the members of the room ?2, which takes its place, the readers of what the
// members of the room ?1 may read. What one person may read stays that person's.
const movedReaders = `readers = iif(readers = 'room:' || ?1, 'room:' || ?2, readers)`

// Move gives all tasks of the room from, done ones included, to the room to. It
// can be repeated.
func (s *Store) Move(ctx context.Context, from, to string) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE task SET room = ?2, `+movedReaders+` WHERE room = ?1`, from, to); err != nil {
		return fmt.Errorf("move tasks: %w", err)
	}
	return nil
}
