package session

import (
	"context"
	"sync"
	"time"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/i18n"
)

// meanwhile tells a person who waits for an answer what is done for it. Its methods may be called on nil.
type meanwhile struct {
	mu    sync.Mutex
	what  string // as {what} of the message; "" = it is thought about
	shown string
	over  bool // the answer is there, or nobody waits for it any more
	timer *time.Timer
}

// whileSlow tells who wrote in what is done, when the answer takes long: as a draft of the answer. In a
// room with others that happens once. The first words of the answer end it.
func (s *Session) whileSlow(ctx context.Context, in chat.Inbound) (end func()) {
	p := &meanwhile{}
	show := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.over || ctx.Err() != nil {
			return
		}
		what := p.what
		if what == "" { // most answers come before anybody is told, and nothing is read for those
			what = s.text(ctx, "doing.thinking")
		}
		if what != p.shown {
			p.shown = what
			text := s.text(ctx, "progress", "what", what)
			if err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: replyID(in.ID), Text: text, Notice: true, Draft: true, ReplyTo: in.ID}); err != nil {
				s.log.Debug("progress not shown", "err", err)
			}
		}
		if in.Private {
			p.timer.Reset(s.cfg.Patience + s.cfg.Patience/4)
		}
	}
	p.mu.Lock()
	p.timer = time.AfterFunc(s.cfg.Patience, show)
	p.mu.Unlock()
	s.meanwhile = p
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
		p.timer.Stop()
	}
}

// does notes what is done now.
func (p *meanwhile) does(what string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
}

// doing is what a tool does, in words for people.
func (s *Session) doing(ctx context.Context, tool string) string {
	if _, ok := i18n.Source()["doing."+tool]; ok {
		return s.text(ctx, "doing."+tool)
	}
	return s.text(ctx, "doing.tool", "tool", command.Word(tool))
}
