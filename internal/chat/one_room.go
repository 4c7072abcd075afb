package chat

import "context"

// OneRoom implements Rooms for a terminal: one private room with one person.
type OneRoom struct{ Room, Person string }

// UserID implements Rooms.
func (OneRoom) UserID() string { return "" }

// Allowed implements Rooms.
func (OneRoom) Allowed(string) bool { return true }

// People implements Rooms.
func (OneRoom) People(context.Context, string) (int, error) { return 2, nil }

// Left implements Rooms.
func (OneRoom) Left(context.Context, string) (bool, error) { return false, nil }

// DirectWith implements Rooms.
func (o OneRoom) DirectWith(_ context.Context, room string) (person string, err error) {
	if room == o.Room {
		person = o.Person
	}
	return person, nil
}

// DirectChat implements Rooms.
func (o OneRoom) DirectChat(_ context.Context, person string) (room string, err error) {
	if person == o.Person {
		room = o.Room
	}
	return room, nil
}
