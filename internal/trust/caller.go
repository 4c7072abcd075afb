package trust

import "slices"

// SenderIntegrity returns the integrity of words that user addresses to the assistant. It is the only place
// that decides who is an owner. An owner whose identity is not proven counts as a user.
func SenderIntegrity(user string, proven bool, owners []string, allowed func(user string) bool) Integrity {
	owner := slices.Contains(owners, user)
	switch {
	case owner && proven:
		return Owner
	case owner || allowed(user):
		return User
	}
	return Foreign
}

// Caller is the place of a requested change, and the integrity of the request.
type Caller struct {
	Place
	Integrity Integrity
}

// Label returns the label of what c creates.
func (c Caller) Label() Label { return Label{Integrity: c.Integrity, Readers: c.Readers()} }

// Readable is the SQL condition for the rows of a place's room. It selects those that MayRead
// allows there.
const Readable = `room = ? AND readers IN (?, 'shared')`

// ReadableArgs returns the arguments of Readable.
func (p Place) ReadableArgs() []any { return []any{p.Room, p.Readers()} }

// MovedReaders is the SQL assignment for rows that move from room ?1 to room ?2: its members become
// the readers. Rows of a single reader stay unchanged.
const MovedReaders = `readers = iif(readers = 'room:' || ?1, 'room:' || ?2, readers)`
