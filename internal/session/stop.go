package session

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/history"
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

// noReply stands in answered in the place of a reply to a message whose answer somebody
// stopped: what is asked after it is not answered on its behalf.
const noReply = ""

// stoppedFor notes that nobody waits for an answer to burst, which is in hand, any more.
func (s *Session) stoppedFor(ctx context.Context, burst ...Inbound) error {
	for _, in := range burst {
		if _, err := s.cfg.DB.ExecContext(ctx, `INSERT INTO answered (question, reply) VALUES (?, ?) ON CONFLICT DO NOTHING`, in.ID, noReply); err != nil {
			return fmt.Errorf("session: note that an answer was stopped: %w", err)
		}
	}
	return nil
}

// wasStopped reports whether somebody stopped the answer to question, and has not asked for it since.
func (s *Session) wasStopped(ctx context.Context, question string) (stopped bool, err error) {
	err = s.cfg.DB.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM answered WHERE question = ? AND reply = ?)`, question, noReply).Scan(&stopped)
	if err != nil {
		return false, fmt.Errorf("session: look whether an answer was stopped: %w", err)
	}
	return stopped, nil
}

// wantAgain notes that question, and what was asked along with it, is to be answered after all.
func (s *Session) wantAgain(ctx context.Context, past []history.Message, question string) error {
	g := groupOf(past, question)
	if stopped, err := s.wasStopped(ctx, question); err != nil || !stopped || !g.known {
		return err
	}
	for _, m := range past[g.first : g.last+1] {
		if _, err := s.cfg.DB.ExecContext(ctx, `DELETE FROM answered WHERE question = ? AND reply = ?`, m.EventID, noReply); err != nil {
			return fmt.Errorf("session: note that an answer is wanted: %w", err)
		}
	}
	return nil
}
