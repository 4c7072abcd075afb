package session

import (
	"context"
	"sync"
	"time"

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
func (t *turn) whileSlow(ctx context.Context) (end func()) {
	p := &meanwhile{}
	show := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.over || ctx.Err() != nil {
			return
		}
		what := p.what
		if what == "" { // most answers come before anybody is told, and nothing is read for those
			what = t.text(ctx, "doing.thinking")
		}
		if what != p.shown {
			p.shown = what
			t.draft(ctx, t.text(ctx, "progress", "what", what), true)
		}
		if t.in.Private {
			p.timer.Reset(t.cfg.Patience + t.cfg.Patience/4)
		}
	}
	p.mu.Lock()
	p.timer = time.AfterFunc(t.cfg.Patience, show)
	p.mu.Unlock()
	t.meanwhile = p
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
