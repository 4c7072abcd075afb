package session

import (
	"context"
	"fmt"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// Left ends what is worked on for a room that we are no longer in: nobody could read it.
// What is remembered of the room stays. It returns at once.
func (m *Manager) Left(room string) {
	m.mu.Lock()
	for talk, s := range m.rooms { // of the room and its threads
		s.mu.Lock()
		if talk.Room() == room && s.running != nil {
			s.running(errWithdrawn)
		}
		s.mu.Unlock()
	}
	m.mu.Unlock()
	if m.helpers != nil {
		m.helpers.look()
	}
}

// leave ends what works for rooms that we are no longer in, and tells nobody of what has
// ended there: also when the program was down as that happened, and had work left.
func (h *helpers) leave(ctx context.Context) error {
	if h.cfg.Left == nil {
		return nil
	}
	rooms, err := store.Column[string](ctx, h.cfg.DB, `SELECT DISTINCT room FROM sub_session WHERE told = 0`)
	if err != nil {
		return fmt.Errorf("session: read sub-sessions: %w", err)
	}
	for _, room := range rooms {
		gone, err := h.cfg.Left(ctx, room)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		all, err := h.read(ctx, h.cfg.DB, `WHERE told = 0 AND room = ?`, room)
		if err != nil {
			return err
		}
		if _, err := h.cancel(ctx, all, i18n.New("why.room_left")); err != nil {
			return err
		}
		if _, err := h.change(ctx, h.cfg.DB, `told = ? WHERE told = 0 AND room = ?`, h.millis(), room); err != nil {
			return err
		}
	}
	return nil
}
