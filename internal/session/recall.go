package session

import (
	"context"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// recallable keeps the conversation so that it can be found again: every message of
// a person and the answer to it that was not kept yet, those from before an
// interruption too. It runs when nobody has said anything for a while, and before
// messages leave the conversation; what fails is done the next time.
func (s *Session) recallable(ctx context.Context) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = s.keep(ctx, past)
	}
	if err == nil {
		err = s.countUse(ctx, s.newest, past)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("what was said cannot be found again yet; it is tried after the next message", "err", err)
	}
}

// keep hears what of past lacks. A message belongs to whom it was said before, also
// where memories are for everybody (memory.isolation): what was noted may be shared, a
// talk word for word is not.
func (s *Session) keep(ctx context.Context, past []history.Message) error {
	if s.kept == 0 {
		n, err := s.cfg.Memory.HeardUpTo(ctx, string(s.talk))
		if err != nil {
			return err
		}
		s.kept = n
	}
	var scope memory.Scope
	for _, m := range past {
		if m.Role == llm.User {
			if scope = ""; m.EventID != "" && m.Sender != "" { // or it is an event, and nobody said it
				scope = m.Readers()
			}
		}
		words := m.Text
		if m.Role == llm.Assistant {
			words = visible(words)
		}
		spoken := m.Role == llm.User || m.Role == llm.Assistant && len(m.Calls) == 0
		if int(m.ID) <= s.kept || scope == "" || !spoken || m.EventID == "" || strings.TrimSpace(words) == "" || history.TakenBack(m) {
			continue
		}
		t := memory.Turn{Scope: scope, Integrity: s.heardIntegrity(m), Event: m.EventID, Sender: m.Sender, At: m.At, Conversation: string(s.talk), Seq: int(m.ID), Text: words}
		if err := s.cfg.Memory.Hear(ctx, t); err != nil {
			return err
		}
		s.kept = int(m.ID)
	}
	return nil
}

// heardIntegrity is the integrity of the words of m, which search finds again.
//
// TODO: m.Label.Integrity, as soon as messages have labels.
func (s *Session) heardIntegrity(m history.Message) trust.Integrity {
	if m.Role == llm.Assistant {
		return trust.User
	}
	return s.level(m.Sender)
}

// countUse counts the memories that the newest answer made use of, among those
// that the model had before it.
func (s *Session) countUse(ctx context.Context, in Inbound, past []history.Message) error {
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
	return s.cfg.Memory.CountUse(ctx, s.scopes(in), asked, past[n-1].Text, s.read)
}

// reads notes what the model gets to read of a request.
func (s *Session) reads(messages []llm.Message) {
	s.read = func(text string) bool {
		for _, m := range messages {
			if strings.Contains(m.Content, text) {
				return true
			}
		}
		return false
	}
}
