package session

import (
	"context"

	"reverie/internal/recall"
)

// indexMessages adds new messages to the search index. It runs while the room is idle, and before
// messages leave the conversation. The next run retries what failed.
func (s *Session) indexMessages(ctx context.Context) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = recall.IndexNew(ctx, s.cfg.History, s.cfg.Memory, s.talk, past)
	}
	if n := len(past); err == nil && n > 0 && past[n-1].EventID == replyID(s.lastHandled.ID) && s.lastCounted < past[n-1].ID {
		s.lastCounted = past[n-1].ID
		err = recall.CountUse(ctx, s.cfg.Memory, s.scopes(s.lastHandled), past, s.lastRequest)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("messages not indexed for search; trying again after the next message", "err", err)
	}
}

// askObjective asks a model which task the room works on, if it is time. It returns false if it must be
// tried again later, because a person waits for an answer in some room.
func (s *Session) askObjective(ctx context.Context) bool {
	if s.cfg.ObjectiveRole == "" || s.thread != "" { // in a thread only a named task counts
		return true
	}
	background, done, ok := s.cfg.Background.Begin(ctx, s.cfg.Now(), 0)
	if !ok {
		return false
	}
	defer done()
	at, err := s.lastPlace(background, s.room)
	if err == nil {
		err = s.objective().Ask(background, at)
	}
	if err != nil && background.Err() == nil {
		s.log.Warn("current task not found", "err", err)
	}
	return true
}
