// Package trust labels text: whose hands it went through, and who may read it.
//
// Every part of a prompt carries a label, and so does every row that outlives a turn. What is
// made from several texts is trusted as the least trusted of them. Two questions are decided by
// labels and nowhere else: whether an act is allowed (Integrity, with the table in package tool) and
// whether a row may be read (Place.MayRead).
package trust

import (
	"fmt"
	"strings"
	"unicode"
)

// Integrity is the least trusted hand that a text went through. The zero value is Foreign, so
// that a text without a label is trusted least. The numbers are stored.
type Integrity int

// The integrities, from the least trusted on.
const (
	Foreign Integrity = 0 // files, pages, pictures, other programs, people who may not use the assistant
	Guest   Integrity = 1 // people who may use it, in words that were not addressed to it
	User    Integrity = 2 // people who may use it, in words addressed to it
	Owner   Integrity = 3 // an owner, the configuration, the program itself, files that are edited by hand
)

// String is the integrity as the log and tables show it.
func (i Integrity) String() string {
	switch i {
	case Owner:
		return "owner"
	case User:
		return "user"
	case Guest:
		return "guest"
	}
	return "foreign"
}

// Readers says who may read a text. Make one with Person or Room, or use Everybody. The zero
// value is Nobody.
type Readers string

const (
	// Nobody may read it: nothing says who may.
	Nobody Readers = ""
	// Everybody is all who may talk to the assistant.
	Everybody Readers = "shared"

	personPrefix = "private:"
	roomPrefix   = "room:"
)

// Person is one person, by Matrix id, in a direct chat.
func Person(user string) Readers { return Readers(personPrefix + user) }

// Room is the members of the room id.
func Room(id string) Readers { return Readers(roomPrefix + id) }

// Person is who r is, by Matrix id, if it is one person; "" otherwise.
func (r Readers) Person() string {
	user, ok := strings.CutPrefix(string(r), personPrefix)
	if !ok {
		return ""
	}
	return user
}

// Room is which room's members r is, by room id; "" otherwise.
func (r Readers) Room() string {
	room, ok := strings.CutPrefix(string(r), roomPrefix)
	if !ok {
		return ""
	}
	return room
}

// Check returns an error that lists the valid forms if r has none of them.
func (r Readers) Check() error {
	named := r.Person() != "" || r.Room() != ""
	if r == Everybody || named && !strings.ContainsFunc(string(r), unicode.IsControl) {
		return nil
	}
	return fmt.Errorf("%q is no scope; there are %s@user:server, %s!id:server and %s", string(r), personPrefix, roomPrefix, Everybody)
}

// Label is what is known of a text's origin and readers. The zero value is foreign text that
// nobody may read.
type Label struct {
	Integrity Integrity
	Readers   Readers
}

// Place is where an answer is read, and who asked for it.
type Place struct {
	Room    string
	Person  string // who asks, by Matrix id
	Private bool   // Room is a direct chat with Person
}

// Readers is who reads what is said at the place.
func (p Place) Readers() Readers {
	if p.Private {
		return Person(p.Person)
	}
	return Room(p.Room)
}

// MayRead reports whether a row of these readers may be shown at the place. What one person
// may read is shown in that person's direct chats, what a room may read in that room.
func (p Place) MayRead(r Readers) bool { return r == Everybody || r == p.Readers() }
