package task

import (
	"context"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Place returns the room and person that may read t.
func (t Task) Place() trust.Place {
	if person := t.Label.Readers.Person(); person != "" {
		return trust.Place{Room: t.Room, Person: person, Private: true}
	}
	return trust.Place{Room: t.Room, Person: t.User}
}

// Move assigns all tasks of the room from, completed ones included, to the room to. It is idempotent.
func (s *Store) Move(ctx context.Context, from, to string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE task SET room = ?2, `+trust.MovedReaders+` WHERE room = ?1`, from, to)
	return store.Wrap(err, "move tasks")
}
