package task

import (
	"context"
	"fmt"

	"reverie/internal/trust"
)

// Caller is where a change is asked for, and how far the words that ask are trusted.
type Caller struct {
	trust.Place
	Integrity trust.Integrity
}

// Label is the label of what c makes.
func (c Caller) Label() trust.Label { return trust.Label{Integrity: c.Integrity, Readers: c.Readers()} }

// Place is where the readers of t read what is said of it.
func (t Task) Place() trust.Place {
	if person := t.Label.Readers.Person(); person != "" {
		return trust.Place{Room: t.Room, Person: person, Private: true}
	}
	return trust.Place{Room: t.Room, Person: t.User}
}

// readable is the condition for the rows of a place's room that trust.Place.MayRead allows there.
const readable = `room = ? AND readers IN (?, 'shared')`

// readableAt are the arguments of readable.
func readableAt(p trust.Place) []any { return []any{p.Room, p.Readers()} }

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
