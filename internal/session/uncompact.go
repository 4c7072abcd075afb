package session

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/history"
)

// uncompact is the command !undo compact.
func (s *Session) uncompact(ctx context.Context, in Inbound) (string, error) {
	s.compaction.in = in
	c, err := s.cfg.History.Uncompact(ctx, s.talk, s.cfg.Now())
	switch {
	case errors.Is(err, history.ErrNotCompacted):
		return "There is nothing to take back: I have all of this conversation as it was said.", nil
	case errors.Is(err, history.ErrUndone):
		return "The last summary is taken back already, and what was before it cannot be any more. `!summary` shows what counts now.", nil
	case err != nil:
		return "", err
	}
	s.guard.full, s.guard.level = false, Calm
	s.log.Info("compaction taken back", "compaction", c.ID, "summarised", c.Messages, "shortened", c.Shortened)
	return fmt.Sprintf("Taken back: %s of the earlier part are before me again as they were said. If that leaves no room for your next message, I summarise anew.",
		messages(c.Messages+c.Shortened)), nil
}
