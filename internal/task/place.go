package task

import "reverie/internal/trust"

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
