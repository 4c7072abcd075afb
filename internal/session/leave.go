package session

import (
	"context"
	"maps"

	"reverie/internal/i18n"
)

// Left ends what is worked on for a room that we are no longer in: nobody could read it.
// What is remembered of the room stays. It returns at once.
func (m *Manager) Left(room string) {
	m.mu.Lock()
	var all []*Session // of the room and its threads
	for talk, s := range m.rooms {
		if talk.Room() == room {
			all = append(all, s)
		}
	}
	m.mu.Unlock()
	for _, s := range all {
		s.mu.Lock()
		if s.running != nil {
			s.running(errWithdrawn)
		}
		s.mu.Unlock()
	}
	if h := m.helpers; h != nil { // those of an earlier run may work for it, too
		h.mu.Lock()
		h.left[room] = true
		h.mu.Unlock()
		h.look()
	}
}

// leave ends what works for rooms that we are no longer in, and tells nobody of what has
// ended there: also when the program was down as that happened, and had work left.
func (h *helpers) leave(ctx context.Context) error {
	h.mu.Lock()
	left := maps.Clone(h.left)
	h.mu.Unlock()
	open, err := h.read(ctx, h.cfg.DB, `WHERE told = 0 GROUP BY room`)
	if err != nil {
		return err
	}
	for _, n := range open {
		gone := left[n.room]
		if !gone && h.cfg.Left != nil {
			if gone, err = h.cfg.Left(ctx, n.room); err != nil {
				return err
			}
		}
		if !gone {
			continue
		}
		all, err := h.read(ctx, h.cfg.DB, `WHERE told = 0 AND room = ?`, n.room)
		if err != nil {
			return err
		}
		if _, err := h.cancel(ctx, all, "", i18n.New("why.room_left")); err != nil {
			return err
		}
		if _, err := h.change(ctx, h.cfg.DB, `told = ? WHERE told = 0 AND room = ?`, h.millis(), n.room); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for room := range left {
		delete(h.left, room)
	}
	return nil
}
