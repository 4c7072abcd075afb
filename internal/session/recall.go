package session

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/recall"
)

// recallable puts the messages that are new into the search index. It runs when nobody has said anything
// for a while, and before messages leave the conversation; what fails is done the next time.
func (s *Session) recallable(ctx context.Context) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = recall.Keep(ctx, s.cfg.History, s.cfg.Memory, s.talk, past)
	}
	if err == nil {
		err = s.countUse(ctx, s.newest, past)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("what was said cannot be found again yet; it is tried after the next message", "err", err)
	}
}

// findObjective has a model say which task the room works on. It reports false while somebody waits
// for an answer, in any room: then it is to be tried again.
func (s *Session) findObjective(ctx context.Context) bool {
	if s.cfg.Objective == "" || s.thread != "" { // a thread has what is named in it
		return true
	}
	calm, done, ok := s.cfg.Background.Begin(ctx, s.cfg.Now(), 0)
	if !ok {
		return false
	}
	defer done()
	at, err := s.lastPlace(calm)
	if err == nil {
		err = s.objective().Ask(calm, at)
	}
	if err != nil && calm.Err() == nil {
		s.log.Warn("it is not known which task is worked on", "err", err)
	}
	return true
}

// countUse counts the memories that the newest answer made use of, among those
// that the model had before it.
func (s *Session) countUse(ctx context.Context, in chat.Head, past []history.Message) error {
	n := len(past)
	if n < 2 || past[n-1].Role != llm.Assistant || past[n-1].EventID != replyID(in.ID) || s.counted >= past[n-1].ID {
		return nil
	}
	s.counted = past[n-1].ID
	asked := ""
	for i := n - 2; i >= 0 && asked == ""; i-- {
		if past[i].Role == llm.User {
			asked = past[i].Text
		}
	}
	return s.cfg.Memory.CountUse(ctx, s.scopes(in), asked, past[n-1].Text, func(text string) bool {
		return slices.ContainsFunc(s.sent, func(m llm.Message) bool { return strings.Contains(m.Content, text) })
	})
}
