// Package mailbox queues what comes into a conversation, and cancels the running work that it stops or changes.
package mailbox

import (
	"context"
	"errors"
	"slices"
	"sync"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/command"
)

// ErrChanged cancels work on a message that was edited or redacted.
var ErrChanged = errors.New("mailbox: changed meanwhile")

// Mailbox queues what comes into a conversation, and tracks the running work. Its methods may be called by any
// goroutine.
type Mailbox struct {
	ready chan struct{} // holds a token while the queue may be non-empty

	mu       sync.Mutex
	waiting  []chat.Inbound
	cancel   context.CancelCauseFunc // cancels the running work; nil = nothing runs
	person   string                  // for whom the work runs; empty = for an event
	subjects map[string]bool         // event IDs of its messages and reply; true = stored in the history
	stopped  bool                    // a !stop cancelled work, and was not answered yet
}

// New returns an empty mailbox.
func New() *Mailbox { return &Mailbox{ready: make(chan struct{}, 1)} }

// Ready returns a channel that holds a token while the queue may be non-empty.
func (b *Mailbox) Ready() <-chan struct{} { return b.ready }

// Put queues in, and cancels the running work if in stops or changes it. A !stop and a redaction go to
// the front of the queue.
func (b *Mailbox) Put(in chat.Inbound) {
	b.mu.Lock()
	at := len(b.waiting)
	switch said := in.(type) {
	case chat.Message:
		if name, _, _ := command.Parse(said.Text); name == "stop" {
			at = 0
			if b.cancel != nil {
				b.cancel(agent.ErrStopped)
				b.stopped = true
			}
		}
	case chat.Edit:
		if b.subjects[said.Target] { // else the turn finds it with HasEdit
			b.cancel(ErrChanged)
		}
	case chat.Redaction:
		at = 0 // first, to remove the text as soon as possible
		switch _, busy := b.subjects[said.Target]; {
		case busy && chat.IsReply(said.Target):
			b.cancel(agent.ErrWithdrawn)
		case busy:
			b.cancel(ErrChanged)
		}
	case chat.Reaction:
		switch _, busy := b.subjects[said.Target]; {
		case busy && said.Action == chat.StopAnswer:
			b.cancel(agent.ErrStopped)
		case busy: // an answer is being written already
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

// Next dequeues one event, change or command, or a burst of messages of one person.
func (b *Mailbox) Next() []chat.Inbound {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.waiting) && n < maxBurst && (n == 0 || sameBurst(b.waiting[0], b.waiting[n])) {
		n++
	}
	burst := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return burst
}

// sameBurst reports whether a and b are messages that one answer answers.
func sameBurst(a, b chat.Inbound) bool {
	first, ok := a.(chat.Message)
	m, also := b.(chat.Message)
	return ok && also && !command.Is(first.Text) && !command.Is(m.Text) &&
		m.Sender == first.Sender && m.Private == first.Private && m.Unproven == first.Unproven
}

// Join dequeues the messages that continue in: those of its person, up to the first command or change. They
// pass messages of other people and events.
func (b *Mailbox) Join(in chat.Message) (more []chat.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in.Text = "" // of !retry
	end := slices.IndexFunc(b.waiting, func(w chat.Inbound) bool {
		m, message := w.(chat.Message)
		return chat.TargetOf(w) != "" || message && command.Is(m.Text)
	})
	if end < 0 {
		end = len(b.waiting)
	}
	var left []chat.Inbound
	for _, w := range b.waiting[:end] {
		if sameBurst(in, w) && len(more) < maxBurst {
			more = append(more, w.(chat.Message))
		} else {
			left = append(left, w)
		}
	}
	b.waiting = append(left, b.waiting[end:]...)
	return more
}

// Requeue puts burst back, behind waiting changes of its messages and of their replies.
func (b *Mailbox) Requeue(burst []chat.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var first, again, later []chat.Inbound
	for _, m := range burst {
		again = append(again, m)
	}
	for _, in := range b.waiting {
		target := chat.TargetOf(in)
		if slices.ContainsFunc(burst, func(m chat.Message) bool { return target == m.ID || target == chat.ReplyID(m.ID) }) {
			first = append(first, in)
		} else {
			later = append(later, in)
		}
	}
	b.waiting = slices.Concat(first, again, later)
}

// SetRunning records the running work of person and how to cancel it; nil = nothing runs.
func (b *Mailbox) SetRunning(person string, cancel context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel, b.person, b.subjects = cancel, person, map[string]bool{}
}

// AddSubjects records ids as messages that the running work is about; stored = the history has them.
func (b *Mailbox) AddSubjects(stored bool, ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if b.cancel != nil {
			b.subjects[id] = stored
		}
	}
}

// Stop cancels the running work of person and reports whether any was running. "" means anyone's.
func (b *Mailbox) Stop(person string, why error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel == nil || person != "" && b.person != person {
		return false
	}
	b.cancel(why)
	return true
}

// HasEdit reports whether an edit of one of targets is queued.
func (b *Mailbox) HasEdit(targets ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(in chat.Inbound) bool {
		e, edit := in.(chat.Edit)
		return edit && slices.Contains(targets, e.Target)
	})
}

// ClearStopped reports whether a !stop cancelled work since the last call.
func (b *Mailbox) ClearStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	stopped := b.stopped
	b.stopped = false
	return stopped
}

// Empty reports whether the queue is empty.
func (b *Mailbox) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) == 0
}
