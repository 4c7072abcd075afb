package session

import (
	"context"
	"errors"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// errStopped is why a turn ends that somebody stopped with !stop.
var errStopped = errors.New("session: stopped by a person")

// stoppable gives the work for person on ids a context that !stop ends, and what people do
// to one of them. done must be called when the work is through.
func (s *Session) stoppable(ctx context.Context, person string, ids ...string) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.running, s.inHand, s.hand = cancel, person, map[string]bool{}
	s.mu.Unlock()
	s.takeInHand(ids...)
	return ctx, func() {
		s.mu.Lock()
		s.running, s.inHand, s.hand = nil, "", nil
		s.mu.Unlock()
		cancel(nil)
	}
}

func isStop(in Inbound) bool {
	name, _, ok := parseCommand(in.Text)
	return ok && name == "stop" && in.Event == "" && in.Change == ""
}

// stop answers !stop. What runs was stopped when the message came, see push.
func (s *Session) stop(ctx context.Context, in Inbound, _ string) (string, error) {
	helpers, err := s.cancelHelpers(ctx)
	if err != nil {
		return "", err
	}
	left, err := s.stopApprovals(ctx)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	stopped := s.stopped || left
	s.stopped = false
	s.mu.Unlock()
	if !stopped && s.thread == "" {
		stopped = s.stopBranches(in.Sender)
	}
	if !stopped && helpers != "" {
		return helpers, nil
	}
	if !stopped {
		return s.text(ctx, "stop.nothing"), nil
	}
	return sentences(s.text(ctx, "stop.done"), helpers), nil
}

// sayStopped says that in is not answered any more: in the room, and in the history, so that
// what is asked after it is not answered on its behalf.
func (s *Session) sayStopped(ctx context.Context, in Inbound) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = s.closeOpenCalls(ctx, past)
	}
	if err != nil {
		return err
	}
	text := s.text(ctx, "stop.ended")
	if n := len(past); n > 0 && (past[n-1].Role != llm.Assistant || len(past[n-1].Calls) > 0) {
		said := history.Message{Room: s.talk, Role: llm.Assistant, EventID: replyID(in.ID), Text: text, At: s.cfg.Now(), Label: programs(s.place(in).Readers())}
		if err := s.cfg.History.Append(ctx, &said); err != nil && !errors.Is(err, history.ErrKnown) {
			return err
		}
	}
	return s.notice(ctx, in, text)
}
