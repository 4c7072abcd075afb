package session

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/memory"
)

// unsay follows that a message, or one of ours, was taken back: nothing of it is left, nor
// of the answers to it, nor what was learned from it, nor what it asked for and is still to
// come. An answer to others as well is given anew without it.
func (s *Session) unsay(ctx context.Context, in Inbound) error {
	if strings.HasPrefix(in.Target, replyID("")) {
		return s.forgetAnswer(ctx, in.Target)
	}
	if err := s.cfg.History.Redact(ctx, in.Target); err != nil {
		return err
	}
	if err := s.cfg.History.UnsayWork(ctx, in.Target); err != nil {
		return err
	}
	replies, err := s.repliesTo(ctx, in.Target)
	if err != nil {
		return err
	}
	for _, reply := range replies {
		if err := s.withdraw(ctx, in, reply); err != nil {
			return err
		}
	}
	if err := s.undoWork(ctx, in, replies); err != nil {
		return err
	}
	quotes, err := s.cfg.Memory.Unhear(ctx, in.Target) // it may have been kept meanwhile
	if err != nil {
		return err
	}
	if err := s.cfg.History.Unquote(ctx, quotes); err != nil {
		return err
	}
	_, err = s.cfg.Memory.ForgetEvent(ctx, memory.Access{Actor: "redaction", All: true}, in.Target) // a tool may have noted it meanwhile
	return err
}

// withdraw removes the answer reply to a message that was taken back. If it is the newest
// answer, and answers others too, it is given anew.
func (s *Session) withdraw(ctx context.Context, in Inbound, reply string) error {
	questions, err := s.questionsOf(ctx, reply)
	if err != nil {
		return err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	for _, q := range slices.Backward(questions) {
		g := groupOf(past, q)
		if q == in.Target || !g.known || history.TakenBack(past[slices.IndexFunc(past, func(m history.Message) bool { return m.EventID == q })]) {
			continue
		}
		if g.answer >= 0 && past[g.answer].EventID != reply || !g.end {
			break
		}
		for g.last > g.first && history.TakenBack(past[g.last]) { // the answer is to what stands
			g.last--
		}
		in.Target = past[g.last].EventID
		return s.regenerate(ctx, in, past, g)
	}
	if err := s.forgetAnswer(ctx, reply); err != nil {
		return err
	}
	return s.cfg.Transport.Remove(ctx, s.room, reply)
}

// forgetAnswer takes the words of the answer reply out of history and search.
func (s *Session) forgetAnswer(ctx context.Context, reply string) error {
	if err := s.cfg.History.Unsay(ctx, reply); err != nil {
		return err
	}
	quotes, err := s.cfg.Memory.Unhear(ctx, reply)
	if err != nil {
		return err
	}
	return s.cfg.History.Unquote(ctx, quotes)
}
