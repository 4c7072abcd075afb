package trust

import "slices"

// Sender is how far the words are trusted that user addresses to the assistant. Who is an owner is
// decided nowhere else: one in whose name others can write is a user.
func Sender(user string, proven bool, owners []string, allowed func(user string) bool) Integrity {
	owner := slices.Contains(owners, user)
	switch {
	case owner && proven:
		return Owner
	case owner || allowed(user):
		return User
	}
	return Foreign
}

// Caller is where a change is asked for, and how far the words that ask are trusted.
type Caller struct {
	Place
	Integrity Integrity
}

// Label is the label of what c makes.
func (c Caller) Label() Label { return Label{Integrity: c.Integrity, Readers: c.Readers()} }

// Readable is the SQL condition for the rows of a place's room that MayRead allows there.
const Readable = `room = ? AND readers IN (?, 'shared')`

// ReadableArgs are the arguments of Readable.
func (p Place) ReadableArgs() []any { return []any{p.Room, p.Readers()} }

// MovedReaders is the SQL assignment for rows that move from the room ?1 to the room ?2: the members
// of the new room read what those of the old one read. What one person may read stays that person's.
const MovedReaders = `readers = iif(readers = 'room:' || ?1, 'room:' || ?2, readers)`
