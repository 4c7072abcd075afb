package session

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/agent"
	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/subsession"
)

// Move gives the room to what belongs to the room from. It can be repeated. Lines of memory stay
// in the old room's file, too: people may have notes in it.
func (m *Manager) Move(ctx context.Context, from, to string) error {
	var failed []error
	failed = append(failed, m.moveTalks(ctx, from, to), m.cfg.Tasks.Move(ctx, from, to), m.goals.Move(ctx, from, to),
		m.settings().Move(ctx, from, to), m.objective().Move(ctx, from, to))
	if _, err := m.cfg.DB.ExecContext(ctx, `INSERT INTO session (room, person, private, last_message_at)
		SELECT ?, person, private, last_message_at FROM session WHERE room = ?
		ON CONFLICT (room) DO NOTHING`, to, from); err != nil {
		failed = append(failed, fmt.Errorf("session: move room: %w", err))
	}
	failed = append(failed, subsession.Move(ctx, m.cfg.DB, from, to))
	entries, err := m.cfg.Memory.Entries(ctx, memory.Room(from))
	failed = append(failed, m.cfg.Skills.Move(from, to), err)
	for _, e := range entries {
		e.Scope = memory.Room(to)
		_, _, err := m.cfg.Memory.Add(ctx, e, "upgrade")
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// moveTalks gives the room to the conversation of the room from, and those of its
// threads: their roots stay behind, but what was said in them is still this room's.
func (m *Manager) moveTalks(ctx context.Context, from, to string) error {
	talks, err := m.cfg.History.Threads(ctx, from)
	failed := []error{err}
	for _, t := range append(talks, history.Timeline(from)) {
		moved := history.TimelineOf(to, t.Thread())
		failed = append(failed, m.cfg.History.Move(ctx, t, moved))
		if t.Thread() != "" { // the room's goal moves by itself; this is up to where it was heard of
			failed = append(failed, m.goals.Move(ctx, string(t), string(moved)))
		}
	}
	return errors.Join(failed...)
}

// Left ends what is worked on for a room that we are no longer in: nobody could read it.
// What is remembered of the room stays. It returns at once.
func (m *Manager) Left(room string) {
	m.mu.Lock()
	for talk, s := range m.rooms { // of the room and its threads
		if talk.Room() == room {
			s.mail.stop("", agent.ErrWithdrawn)
		}
	}
	m.mu.Unlock()
	if m.helpers != nil {
		m.helpers.Wake()
	}
}
