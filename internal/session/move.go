package session

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/memory"
)

// Move gives the room to what belongs to the room from: the conversation, the
// tasks, the goals, the mode, the settings and what is remembered there. It can be repeated. Lines of memory are
// copied, and stay in the old room's file too: people may have notes in it.
func (m *Manager) Move(ctx context.Context, from, to string) error {
	var failed []error
	failed = append(failed, m.cfg.History.Move(ctx, from, to), m.cfg.Tasks.Move(ctx, from, to), m.cfg.Tasks.Goals().Move(ctx, from, to), m.cfg.Prompt.Move(ctx, from, to), Settings{m.cfg.DB}.move(ctx, from, to))
	if _, err := m.cfg.DB.ExecContext(ctx, `INSERT INTO session (room, person, private, heard_at, think, mode, mode_auto, pin)
		SELECT ?, person, private, heard_at, think, mode, mode_auto, pin FROM session WHERE room = ? ON CONFLICT (room) DO NOTHING`, to, from); err != nil {
		failed = append(failed, fmt.Errorf("session: move room: %w", err))
	}
	if _, err := m.cfg.DB.ExecContext(ctx, `UPDATE mode_switch SET room = ? WHERE room = ?`, to, from); err != nil {
		failed = append(failed, fmt.Errorf("session: move room: %w", err))
	}
	if _, err := m.cfg.DB.ExecContext(ctx, `UPDATE sub_session SET room = ? WHERE room = ?`, to, from); err != nil {
		failed = append(failed, fmt.Errorf("session: move room: %w", err))
	}
	entries, err := m.cfg.Memory.Entries(ctx, memory.Room(from))
	failed = append(failed, err)
	for _, e := range entries {
		e.Scope = memory.Room(to)
		_, _, err := m.cfg.Memory.Add(ctx, e, "upgrade")
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
