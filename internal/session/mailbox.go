package session

import (
	"context"
	"slices"
	"strings"
	"sync"

	"reverie/internal/agent"
	"reverie/internal/chat"
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

// put takes a message in. A !stop acts at once: it ends the work in hand, and is answered next.
func (b *mailbox) put(in chat.Inbound) {
	b.mu.Lock()
	switch {
	case in.Change != "":
		b.putChange(in)
	case isStop(in):
		b.waiting = append([]chat.Inbound{in}, b.waiting...)
		if b.running != nil {
			b.running(agent.ErrStopped)
			b.stopped = true
		}
	default:
		b.waiting = append(b.waiting, in)
	}
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// putChange takes a change in, and ends at once what it concerns. The lock is held.
func (b *mailbox) putChange(in chat.Inbound) {
	heard, busy := b.about[in.Target]
	ours := strings.HasPrefix(in.Target, replyID(""))
	switch {
	case in.Change == chat.StopThis && busy:
		b.running(agent.ErrStopped)
	case in.Change == chat.AskAgain && busy: // it is being answered
		in.Target = ""
	case in.Change == chat.TakenBack && busy && ours:
		b.running(agent.ErrWithdrawn)
	case in.Change == chat.Voted, in.Change == chat.Approved: // an answer to a question ends no work
	case busy && (heard || in.Change == chat.TakenBack): // else takeUp finds it
		b.running(errChanged)
	}
	if in.Change == chat.TakenBack { // nobody should see it for longer than need be
		b.waiting = append([]chat.Inbound{in}, b.waiting...)
		return
	}
	b.waiting = append(b.waiting, in)
}

// maxBurst is how many waiting messages of one person are answered together.
const maxBurst = 20

// next takes out what is to be answered next: a command by itself, or all that one person has
// written since the last answer.
func (b *mailbox) next() []chat.Inbound {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.waiting) && n < maxBurst {
		first, in := b.waiting[0], b.waiting[n]
		same := in.Sender == first.Sender && in.Private == first.Private && in.Unproven == first.Unproven
		if n > 0 && (alone(first) || alone(in) || !same) {
			break
		}
		n++
	}
	burst := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return burst
}

// putBack has a burst worked on again, after what was done to it meanwhile.
func (b *mailbox) putBack(burst []chat.Inbound) {
	ids := named(burst)
	b.mu.Lock()
	defer b.mu.Unlock()
	var first, later []chat.Inbound
	for _, in := range b.waiting {
		if in.Change != "" && slices.Contains(ids, in.Target) {
			first = append(first, in)
		} else {
			later = append(later, in)
		}
	}
	b.waiting = slices.Concat(first, burst, later)
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
		return in.Change == chat.Edited && slices.Contains(targets, in.Target)
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
