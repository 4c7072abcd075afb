package session

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// errStopped is why a turn ends that somebody stopped with !stop.
var errStopped = errors.New("session: stopped by a person")

const (
	stoppedText = "I stopped working on this, as asked. `!retry` answers it after all."
	slowText    = "_The model is taking its time. I am still working on this; `!stop` ends it._"
)

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
	s.mu.Lock()
	stopped := s.stopped
	s.stopped = false
	s.mu.Unlock()
	if !stopped && s.thread == "" {
		stopped = s.stopBranches(in.Sender)
	}
	if !stopped && helpers != "" {
		return helpers, nil
	}
	if !stopped {
		return "There is nothing to stop: I am not working on an answer here.", nil
	}
	return strings.TrimSpace("Stopped. " + helpers), nil
}

// whileSlow tells a person alone with the bot, once and as a draft, that their
// answer takes long. What it returns ends that; the first words of the answer do.
func (s *Session) whileSlow(ctx context.Context, in Inbound) (end func()) {
	if !in.Private { // there others read along, and see that the bot is typing
		return func() {}
	}
	var mu sync.Mutex
	over := false
	timer := time.AfterFunc(s.cfg.Patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if over || ctx.Err() != nil {
			return
		}
		if err := s.cfg.Transport.Say(ctx, s.room, Outgoing{Thread: s.thread, ID: replyID(in.ID), Text: slowText, Draft: true, ReplyTo: in.ID}); err != nil {
			s.log.Debug("draft not shown", "err", err)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
