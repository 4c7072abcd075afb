package session

import (
	"context"
	"errors"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/subsession"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// offlineRooms is the chat.Rooms of a program without a connection: rooms as of their last message.
type offlineRooms struct {
	chat.OneRoom // without a room
	db           *store.DB
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

// RoomReplaced moves everything of the room from to the room to, after an upgrade. It may be repeated. Memory is
// copied: people may have notes in the old room's file.
func (m *Manager) RoomReplaced(ctx context.Context, from, to string) error {
	_, err := m.cfg.DB.ExecContext(ctx, `INSERT INTO session (room, person, private, last_message_at)
		SELECT ?, person, private, last_message_at FROM session WHERE room = ?
		ON CONFLICT (room) DO NOTHING`, to, from)
	failed := []error{m.moveTalks(ctx, from, to), m.cfg.Tasks.Move(ctx, from, to), m.goals.Move(ctx, from, to),
		m.cfg.Settings.Move(ctx, from, to), m.objective().Move(ctx, from, to), store.Wrap(err, "session: move room"),
		subsession.Move(ctx, m.cfg.DB, from, to), m.cfg.Skills.Move(from, to), m.cfg.Tools.Move(ctx, from, to)}
	outline, unread := m.cfg.Memory.Outline(ctx, memory.Room(from))
	numbers := store.Map(outline, func(e memory.Entry) int64 { return e.N })
	entries, err := m.cfg.Memory.List(ctx, memory.Access{Scopes: []memory.Scope{memory.Room(from)}}, memory.Filter{Numbers: numbers})
	failed = append(failed, unread, err)
	for _, e := range entries {
		e.Scope = memory.Room(to)
		_, _, err := m.cfg.Memory.Add(ctx, e, "upgrade")
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// moveTalks moves the conversations of the room from and its threads. The threads' root events stay in
// the old room.
func (m *Manager) moveTalks(ctx context.Context, from, to string) error {
	talks, err := m.cfg.History.Threads(ctx, from)
	failed := []error{err}
	for _, t := range append(talks, history.Timeline(from)) {
		moved := history.NewTimeline(to, t.Thread())
		failed = append(failed, m.cfg.History.Move(ctx, t, moved))
		if t.Thread() != "" { // the room's goal moves in Move; this is the thread's cursor of applied markers
			failed = append(failed, m.goals.Move(ctx, string(t), string(moved)))
		}
	}
	return errors.Join(failed...)
}

// RoomLeft cancels all work for a room that we have left. The answers would have no readers.
// Memory of the room stays. It returns at once.
func (m *Manager) RoomLeft(room string) {
	m.mu.Lock()
	for talk, s := range m.sessions { // of the room and its threads
		if talk.Room() == room {
			s.mail.Stop("", agent.ErrWithdrawn)
		}
	}
	m.mu.Unlock()
	m.subSessions.Wake()
}
