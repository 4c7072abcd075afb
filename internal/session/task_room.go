package session

import (
	"context"

	"reverie/internal/history"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// TaskRoom is the room in which a task that is due may be worked on: its own if no others than
// its readers read that now. Else it is a direct chat of the person who may read the task, who
// is told of that there. "" means that there is none.
func (m *Manager) TaskRoom(ctx context.Context, t task.Task) (string, error) {
	person := t.Label.Readers.Person()
	if person == "" {
		if t.Label.Readers == trust.Room(t.Room) || t.Label.Readers == trust.Everybody {
			return t.Room, nil
		}
		return "", nil
	}
	switch alone, err := m.alone(ctx, t.Room, person); {
	case err != nil:
		return "", err
	case alone:
		return t.Room, nil
	}
	if m.cfg.DirectChat == nil {
		return "", nil
	}
	room, err := m.cfg.DirectChat(ctx, person)
	if err != nil || room == "" || room == t.Room {
		return "", err
	}
	if alone, err := m.alone(ctx, room, person); err != nil || !alone {
		return "", err
	}
	text := m.cfg.Messages.For(ctx, room)("task.moved", "task", t.Content)
	return room, m.cfg.Transport.Say(ctx, room, Outgoing{ID: "moved:" + t.ID + ":" + room, Text: text, Notice: true})
}

// alone reports whether a room is a direct chat with person now.
func (m *Manager) alone(ctx context.Context, room, person string) (bool, error) {
	return newSession(m, history.Talk(room)).private(ctx, person)
}

// Readers is who reads what is said in a room, as it was when somebody wrote there last.
func (m *Manager) Readers(ctx context.Context, room string) (trust.Readers, error) {
	at, err := newSession(m, history.Talk(room)).lastPlace(ctx)
	return at.Readers(), err
}
