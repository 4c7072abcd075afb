package session

import (
	"context"
)

// text is a sentence in the language of the room.
func (s *Session) text(ctx context.Context, key string, fill ...string) string {
	return s.cfg.Messages.Text(ctx, s.room, key, fill...)
}
