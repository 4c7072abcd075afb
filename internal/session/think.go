package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/llm"
)

// thinking is how much the model is to think in this room.
func (s *Session) thinking(ctx context.Context) (llm.Think, error) {
	var level string
	err := s.cfg.DB.QueryRowContext(ctx, `SELECT think FROM session WHERE room = ?`, s.room).Scan(&level)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("session: read thinking level: %w", err)
	}
	return llm.Think(level), nil
}

// think is the command !think: it sets the level of the room, or tells it.
func (s *Session) think(ctx context.Context, in Inbound, args string) (string, error) {
	if args == "" {
		level, err := s.thinking(ctx)
		if err != nil {
			return "", err
		}
		if level == llm.ThinkDefault {
			return s.text(ctx, "think.free"), nil
		}
		return s.text(ctx, "think.now", "level", string(level)), nil
	}
	level, err := llm.ParseThink(args)
	if err != nil {
		return s.text(ctx, "think.unknown"), nil
	}
	// The row is there: the session knows its room before it runs a command.
	if _, err := s.cfg.DB.ExecContext(ctx, `UPDATE session SET think = ? WHERE room = ?`, string(level), s.room); err != nil {
		return "", fmt.Errorf("session: set thinking level: %w", err)
	}
	if level == llm.ThinkDefault {
		return s.text(ctx, "think.freed"), nil
	}
	return s.text(ctx, "think.set", "level", string(level)), nil
}
