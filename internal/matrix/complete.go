package matrix

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/retry"
	"reverie/internal/matrix/send"
	"reverie/internal/pace"
)

// completer fetches the events and files that a message refers to, before it is delivered.
type completer struct {
	*intake
	inbox *delivery.Inbox
	wake  chan struct{} // signalled when a message is complete
}

// startCompletingMessages starts completing the first incomplete message of each room. It returns the
// rows that can be delivered now: those before the first incomplete one of their room.
func (f *completer) startCompletingMessages(
	ctx context.Context, g *errgroup.Group, l *send.RoomLocks, rows []delivery.InboxRow,
) []delivery.InboxRow {
	var ready []delivery.InboxRow
	blocked := map[string]bool{}
	for _, r := range rows {
		switch m := r.Message; {
		case r.Target != "" && !blocked[r.Target]: // a change may stop the work that others wait for
			ready = append(ready, r)
		case blocked[m.Room]:
			blocked[m.ID] = true
		case r.Incomplete:
			blocked[m.Room], blocked[m.ID] = true, true
			l.TryGo(g, m.Room, f.wake, func() { f.completeAndStoreMessage(ctx, m) })
		default:
			ready = append(ready, r)
		}
	}
	return ready
}

// completeAndStoreMessage fetches the missing parts of m and stores it. After a restart it starts
// over. A part that cannot be fetched is named in m, so that the model can tell the person.
func (f *completer) completeAndStoreMessage(ctx context.Context, m chat.Message) {
	for _, step := range []struct {
		what  string
		limit time.Duration
		fetch func(context.Context, *chat.Message) error
	}{
		{"files", fetchLimit, f.fetchOwnAndRepliedFiles},
		{"the root of its thread", rootTime, f.quoteThreadRoot},
		{"reply", chainTime, f.quoteReplyChain},
	} {
		if err := f.runStepWithTimeout(ctx, step.limit, step.fetch, &m); err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn("matrix: a message could not be completed", "room", m.Room, "event", m.ID, "what", step.what, "err", err)
		}
	}
	if ctx.Err() != nil {
		return // at the next start
	}
	if err := f.inbox.StoreCompleted(ctx, m); err != nil {
		f.cfg.Log.Error("matrix: inbox", "event", m.ID, "err", err)
		_ = pace.Pause(ctx, nil, retry.FirstWait) // the row is still incomplete: without a pause it would be tried again at once
	}
}

func (f *completer) runStepWithTimeout(ctx context.Context, limit time.Duration, fetch func(context.Context, *chat.Message) error,
	m *chat.Message) (err error) {
	if f.cfg.timings.fetch > 0 {
		limit = min(limit, f.cfg.timings.fetch)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // the content of one message must not stop the others
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fetch(ctx, m)
}
