package session

import (
	"context"
	"errors"
	"strings"
)

// errStopped is why a turn ends that somebody stopped with !stop.
var errStopped = errors.New("session: stopped by a person")

// stoppable gives a burst a context that !stop ends. done must be called when
// the burst is through.
func (s *Session) stoppable(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.running = cancel
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		s.running = nil
		s.mu.Unlock()
		cancel(nil)
	}
}

func isStop(in Inbound) bool {
	name, _, ok := parseCommand(in.Text)
	return ok && name == "stop" && in.Event == ""
}

// stop answers !stop. What runs was stopped when the message came, see push.
func (s *Session) stop(ctx context.Context, _ Inbound, _ string) (string, error) {
	helpers, err := s.cancelHelpers(ctx)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	stopped := s.stopped
	s.stopped = false
	s.mu.Unlock()
	if !stopped && helpers != "" {
		return helpers, nil
	}
	if !stopped {
		return s.text(ctx, "stop.nothing"), nil
	}
	return strings.TrimSpace(s.text(ctx, "stop.done") + " " + helpers), nil
}
