package session

import (
	"context"

	"reverie/internal/llm"
)

// think is the command !think: it sets the level of the room, or tells it.
func (s *Session) think(ctx context.Context, in Inbound, args string) (string, error) {
	if args == "" {
		now, err := s.mode(ctx)
		if err != nil {
			return "", err
		}
		if now.think == llm.ThinkDefault {
			return s.text(ctx, "think.free"), nil
		}
		return s.text(ctx, "think.now", "level", string(now.think)), nil
	}
	level, err := llm.ParseThink(args)
	if err != nil {
		return s.text(ctx, "think.unknown"), nil
	}
	if err := s.settings().put(ctx, s.room, settingThink, string(level), in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	if level == llm.ThinkDefault {
		return s.text(ctx, "think.freed"), nil
	}
	return s.text(ctx, "think.set", "level", string(level)), nil
}
