// Package trust labels text with its integrity and its readers.
//
// Every part of a prompt carries a label, and so does every stored row. A text made from several
// has their least integrity. Labels alone decide two questions: whether an act is allowed
// (Integrity, with the table in package tool) and whether a row may be read (Place.MayRead).
package trust

import (
	"fmt"
	"strings"
	"unicode"
)

// Integrity is the lowest trust of all hands that a text went through. The zero value is Foreign,
// so a text without a label is trusted least. The numbers are stored in the database.
type Integrity int

// The integrities, in ascending order.
const (
	Foreign Integrity = 0 // files, web pages, pictures, other programs, people who may not use the assistant
	Guest   Integrity = 1 // people who may use it, in words not addressed to it
	User    Integrity = 2 // people who may use it, in words addressed to it
	Owner   Integrity = 3 // an owner, the configuration, the program itself, files edited by hand
)

// String returns the name in logs and tables.
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

// Readers says who may read a text. Make one with Person or Room, or use Everybody. The zero value
// means unknown readers.
type Readers string

const (
	Nobody    Readers = ""       // unknown readers: no place may show it
	Everybody Readers = "shared" // all who may talk to the assistant

	personPrefix = "private:"
	roomPrefix   = "room:"
)

// PersonReaders returns the readers of one person's direct chats, by Matrix id.
func PersonReaders(user string) Readers { return Readers(personPrefix + user) }

// RoomReaders returns the members of the room id.
func RoomReaders(id string) Readers { return Readers(roomPrefix + id) }

// Person returns the Matrix id if r is one person, else "".
func (r Readers) Person() string {
	user, ok := strings.CutPrefix(string(r), personPrefix)
	if !ok {
		return ""
	}
	return user
}

// Room returns the room id if r is a room's members, else "".
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

// Label is a text's origin and readers. The zero value is foreign text without readers.
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

// Readers returns the readers of messages at the place.
func (p Place) Readers() Readers {
	if p.Private {
		return PersonReaders(p.Person)
	}
	return RoomReaders(p.Room)
}

// MayRead reports whether a row with these readers may be shown at the place: a person's rows in
// that person's direct chats, a room's rows in that room, shared rows everywhere.
func (p Place) MayRead(r Readers) bool { return r == Everybody || r == p.Readers() }
