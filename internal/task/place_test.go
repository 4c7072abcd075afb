package task

import "reverie/internal/trust"

// in is the room among several people.
func in(room string) trust.Place { return trust.Place{Room: room} }

// asks is user, whose words are trusted, asking in the room among several people.
func asks(room, user string) Caller {
	return Caller{trust.Place{Room: room, Person: user}, trust.User}
}

// labelled is t with a label for the members of its room, if it has none.
func labelled(t Task) Task {
	if t.Label.Readers == "" {
		t.Label = trust.Label{Integrity: trust.User, Readers: trust.Room(t.Room)}
	}
	return t
}
