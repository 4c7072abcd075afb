package task

import (
	"context"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Place is where the readers of t read what is said of it.
func (t Task) Place() trust.Place {
	if person := t.Label.Readers.Person(); person != "" {
		return trust.Place{Room: t.Room, Person: person, Private: true}
	}
	return trust.Place{Room: t.Room, Person: t.User}
}

// Move gives all tasks of the room from, done ones included, to the room to. It
// can be repeated.
func (s *Store) Move(ctx context.Context, from, to string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE task SET room = ?2, `+trust.MovedReaders+` WHERE room = ?1`, from, to)
	return store.Wrap(err, "move tasks")
}
