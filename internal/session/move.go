package session

import (
	"context"
	"errors"

	"reverie/internal/agent"
	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/subsession"
)

// RoomReplaced moves everything of the room from to the room to, after an upgrade. It may be repeated. Memory is
// copied: people may have notes in the old room's file.
func (m *Manager) RoomReplaced(ctx context.Context, from, to string) error {
	_, err := m.cfg.DB.ExecContext(ctx, `INSERT INTO session (room, person, private, last_message_at)
		SELECT ?, person, private, last_message_at FROM session WHERE room = ?
		ON CONFLICT (room) DO NOTHING`, to, from)
	failed := []error{m.moveTalks(ctx, from, to), m.cfg.Tasks.Move(ctx, from, to), m.goals.Move(ctx, from, to),
		m.cfg.Settings.Move(ctx, from, to), m.objective().Move(ctx, from, to), store.Wrap(err, "session: move room"),
		subsession.Move(ctx, m.cfg.DB, from, to), m.cfg.Skills.Move(from, to), m.cfg.Tools.Move(ctx, from, to)}
	entries, err := m.cfg.Memory.Entries(ctx, memory.Room(from))
	failed = append(failed, err)
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
			s.mail.stop("", agent.ErrWithdrawn)
		}
	}
	m.mu.Unlock()
	m.subSessions.Wake()
}
