package session

import (
	"context"
	"reverie/internal/i18n"
)

// text is a sentence in the language of the room.
func (s *Session) text(ctx context.Context, key string, fill ...string) string {
	return s.cfg.Messages.Text(ctx, s.room, key, fill...)
}

// why is a reason in the language of the room. What some other program said is for the log,
// and people are told so.
func (s *Session) why(ctx context.Context, reason i18n.Text) string {
	if !reason.Known() {
		return s.text(ctx, "why.trouble")
	}
	return reason.In(s.cfg.Messages.For(ctx, s.room))
}
