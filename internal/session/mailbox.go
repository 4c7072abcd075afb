package session

import (
	"context"
	"slices"
	"strings"
	"sync"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/command"
)

// mailbox holds what waits in a conversation, and knows what is worked on, so that it can be ended.
type mailbox struct {
	ready chan struct{} // holds a token while something may wait

	mu      sync.Mutex
	waiting []chat.Inbound
	running context.CancelCauseFunc // ends the work in hand; nil when there is none
	person  string                  // whose work that is; empty = an event's
	about   map[string]bool         // its messages and its reply: whether the history has them
	stopped bool                    // somebody stopped work, and has not heard of it yet
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put takes in what came, and ends at once the work that it concerns. A !stop is answered next.
func (b *mailbox) put(in chat.Inbound) {
	b.mu.Lock()
	at := len(b.waiting)
	switch said := in.(type) {
	case chat.Message:
		if name, _, _ := command.Parse(said.Text); name == "stop" {
			at = 0
			if b.running != nil {
				b.running(agent.ErrStopped)
				b.stopped = true
			}
		}
	case chat.Edit:
		if b.about[said.Target] { // else takeUp finds it
			b.running(errChanged)
		}
	case chat.Redaction:
		at = 0 // nobody should see it for longer than need be
		switch _, busy := b.about[said.Target]; {
		case busy && strings.HasPrefix(said.Target, replyID("")):
			b.running(agent.ErrWithdrawn)
		case busy:
			b.running(errChanged)
		}
	case chat.Reaction:
		switch _, busy := b.about[said.Target]; {
		case busy && said.Action == chat.StopAnswer:
			b.running(agent.ErrStopped)
		case busy: // it is being answered
			said.Target = ""
			in = said
		}
	}
	b.waiting = slices.Insert(b.waiting, at, in)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// maxBurst is how many waiting messages of one person are answered together.
const maxBurst = 20

// next takes out what is worked on next: an event, a change or a command by itself, or all messages that one
// person has written since the last answer.
func (b *mailbox) next() []chat.Inbound {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.waiting) && n < maxBurst && (n == 0 || together(b.waiting[0], b.waiting[n])) {
		n++
	}
	burst := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return burst
}

// together reports whether two are messages that are answered together.
func together(a, b chat.Inbound) bool {
	first, ok := a.(chat.Message)
	m, also := b.(chat.Message)
	return ok && also && !command.Is(first.Text) && !command.Is(m.Text) &&
		m.Sender == first.Sender && m.Private == first.Private && m.Unproven == first.Unproven
}

// putBack has a burst worked on again, after what was done to it meanwhile.
func (b *mailbox) putBack(burst []chat.Message) {
	ids := named(burst)
	b.mu.Lock()
	defer b.mu.Unlock()
	var first, again, later []chat.Inbound
	for _, m := range burst {
		again = append(again, m)
	}
	for _, in := range b.waiting {
		if slices.Contains(ids, chat.TargetOf(in)) {
			first = append(first, in)
		} else {
			later = append(later, in)
		}
	}
	b.waiting = slices.Concat(first, again, later)
}

// begin notes whose work begins, and how it is ended; stop nil = nothing is worked on.
func (b *mailbox) begin(person string, stop context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.person, b.about = stop, person, map[string]bool{}
}

// concerns notes that ids are what is worked on, and whether the history has them.
func (b *mailbox) concerns(heard bool, ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if b.running != nil {
			b.about[id] = heard
		}
	}
}

// stop ends what is worked on, of person or, if that is empty, of anybody, and reports whether anything was.
func (b *mailbox) stop(person string, why error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil || person != "" && b.person != person {
		return false
	}
	b.running(why)
	return true
}

// edited reports whether an edit of one of targets waits.
func (b *mailbox) edited(targets ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(in chat.Inbound) bool {
		e, edit := in.(chat.Edit)
		return edit && slices.Contains(targets, e.Target)
	})
}

// wasStopped reports, once, whether a !stop has ended work.
func (b *mailbox) wasStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	stopped := b.stopped
	b.stopped = false
	return stopped
}

// empty reports whether nothing waits.
func (b *mailbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) == 0
}
