package session

import (
	"context"
	"database/sql"

	"reverie/internal/chat"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// offlineRooms is the chat.Rooms of a program without a connection: rooms as of their last message.
type offlineRooms struct {
	chat.OneRoom // without a room
	db           *sql.DB
}

// lastHead returns who wrote in room last, and whether it was a direct chat then; false = no messages.
func (l offlineRooms) lastHead(ctx context.Context, room string) (in chat.Head, known bool, err error) {
	in.Room = room
	err = l.db.QueryRowContext(ctx, `SELECT person, private FROM session WHERE room = ?`, room).Scan(&in.Sender, &in.Private)
	known, err = store.Found(err)
	return in, known, store.Wrap(err, "session: read room")
}

func (l offlineRooms) DirectWith(ctx context.Context, room string) (string, error) {
	last, _, err := l.lastHead(ctx, room)
	if !last.Private {
		return "", err
	}
	return last.Sender, err
}

// People implements chat.Rooms; 0 = not known.
func (l offlineRooms) People(context.Context, string) (int, error) { return 0, nil }

// TaskRooms chooses the rooms in which due tasks run.
type TaskRooms struct {
	chat.Rooms
	Transport chat.Transport // tells a person that a task moves
	Messages  *settings.Messages
}

// TaskRoom returns the room in which the due task t may run; "" = no room. It is t's own room if only
// t's readers read it now, else a direct chat with t's person, who is told there.
func (r TaskRooms) TaskRoom(ctx context.Context, t task.Task) (string, error) {
	person := t.Label.Readers.Person()
	if person == "" {
		if t.Label.Readers == trust.RoomReaders(t.Room) || t.Label.Readers == trust.Everybody {
			return t.Room, nil
		}
		return "", nil
	}
	with, err := r.DirectWith(ctx, t.Room)
	if err != nil {
		return "", err
	}
	if with == person {
		return t.Room, nil
	}
	room, err := r.DirectChat(ctx, person)
	if err != nil || room == "" || room == t.Room {
		return "", err
	}
	if with, err = r.DirectWith(ctx, room); err != nil || with != person {
		return "", err
	}
	text := r.Messages.For(ctx, room)("task.moved", "task", t.Content)
	return room, r.Transport.Send(ctx, room, chat.Outgoing{ID: "moved:" + t.ID + ":" + room, Text: text, Notice: true})
}
