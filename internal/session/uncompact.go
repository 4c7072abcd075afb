package session

import (
	"context"
	"errors"

	"reverie/internal/history"
)

// uncompact is the command !undo compact.
func (s *Session) uncompact(ctx context.Context, in Inbound) (string, error) {
	s.compaction.in = in
	c, err := s.cfg.History.Uncompact(ctx, s.talk, s.cfg.Now())
	switch {
	case errors.Is(err, history.ErrNotCompacted):
		return s.text(ctx, "undo.summary_none"), nil
	case errors.Is(err, history.ErrUndone):
		return s.text(ctx, "undo.summary_gone"), nil
	case err != nil:
		return "", err
	}
	s.guard.full, s.guard.acted = false, false
	s.log.Info("compaction taken back", "compaction", c.ID, "summarised", c.Messages, "shortened", c.Shortened)
	return s.text(ctx, "undo.summary", "messages", s.messages(ctx, c.Messages+c.Shortened)), nil
}
