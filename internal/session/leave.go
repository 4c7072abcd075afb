package session

import (
	"context"
	"time"

	"reverie/internal/history"
)

// leaveTime bounds what is still stored for a room that we are no longer in.
const leaveTime = 10 * time.Second

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
	s := newSession(m, history.TalkOf(room, "")) // helpers of an earlier run may work for it
	time.AfterFunc(0, func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		if _, err := s.cancelHelpers(ctx); err != nil {
			s.log.Warn("what works in the background for a room that was left is not stopped", "err", err)
		}
	})
}

// leave ends what works for rooms that we are no longer in, and tells nobody of what has
// ended there: also when the program was down as that happened, and had work left.
func (h *helpers) leave(ctx context.Context) error {
	if h.cfg.Left == nil {
		return nil
	}
	open, err := h.read(ctx, h.cfg.DB, `WHERE told = 0 GROUP BY room`)
	if err != nil {
		return err
	}
	for _, n := range open {
		gone, err := h.cfg.Left(ctx, n.room)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		all, err := h.read(ctx, h.cfg.DB, `WHERE told = 0 AND room = ?`, n.room)
		if err != nil {
			return err
		}
		if _, err := h.cancel(ctx, all, "", "the room was left"); err != nil {
			return err
		}
		if _, err := h.change(ctx, h.cfg.DB, `told = ? WHERE told = 0 AND room = ?`, h.millis(), n.room); err != nil {
			return err
		}
	}
	return nil
}
