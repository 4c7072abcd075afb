package session

import (
	"context"
	"sync"
	"time"

	"reverie/internal/command"
	"reverie/internal/i18n"
)

// progressNotice shows a waiting person what is being done, as a draft of the answer. Its methods accept
// a nil receiver.
type progressNotice struct {
	mu       sync.Mutex
	activity string // {what} of the message text; "" = the model is thinking
	shown    string
	stopped  bool // the answer has begun, or the turn has ended
	timer    *time.Timer
}

// startProgress shows a progress notice when the answer takes longer than ProgressAfter. In a room with
// others it shows only one. stop ends it; the answer's first words call stop, too.
func (t *turn) startProgress(ctx context.Context) (stop func()) {
	p := &progressNotice{}
	show := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.stopped || ctx.Err() != nil {
			return
		}
		what := p.activity
		if what == "" { // read only now: most answers are faster than this
			what = t.text(ctx, "doing.thinking")
		}
		if what != p.shown {
			p.shown = what
			t.draft(ctx, t.text(ctx, "progress", "what", what), true)
		}
		if t.in.Private {
			p.timer.Reset(t.cfg.ProgressAfter + t.cfg.ProgressAfter/4)
		}
	}
	p.mu.Lock()
	p.timer = time.AfterFunc(t.cfg.ProgressAfter, show)
	p.mu.Unlock()
	t.progress = p
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopped = true
		p.timer.Stop()
	}
}

// setActivity records what is being done now.
func (p *progressNotice) setActivity(what string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.activity = what
}

// activity describes for people what a tool does.
func (s *Session) activity(ctx context.Context, tool string) string {
	if _, ok := i18n.Source()["doing."+tool]; ok {
		return s.text(ctx, "doing."+tool)
	}
	return s.text(ctx, "doing.tool", "tool", command.Word(tool))
}
