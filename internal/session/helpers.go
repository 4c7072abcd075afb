package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/prompt"
	"reverie/internal/store"
	"reverie/internal/tool"
)

// HelperConfig bounds the sub-sessions.
type HelperConfig struct {
	Parallel int           // at the same time, over all rooms; 0 = there are none
	Depth    int           // how deep they may ask for others; 0 = 2
	Timeout  time.Duration // of work, unless the job says it; 0 = 15 min
	Rounds   int           // requests to the model for each; 0 = 15
}

const (
	mostOpen  = 50     // in a room
	subPrefix = "sub:" // of the room in which a sub-session's messages are
)

// helpers run the sub-sessions of all rooms. What is to be done stands in the
// database alone: the program may end at any point and goes on from there.
type helpers struct {
	*Manager
	group errgroup.Group
	wake  chan struct{} // holds a token while there may be something to do

	mu     sync.Mutex
	active map[string]activeHelper // by id
	events map[string]string       // those that a room works on: by room, the event
}

// activeHelper is one that is being worked on.
type activeHelper struct {
	room string
	stop context.CancelCauseFunc
}

func newHelpers(m *Manager) *helpers {
	c := &m.cfg.Helpers
	c.Depth, c.Timeout, c.Rounds = cmp.Or(c.Depth, 2), cmp.Or(c.Timeout, 15*time.Minute), cmp.Or(c.Rounds, 15)
	return &helpers{Manager: m, wake: make(chan struct{}, 1), active: map[string]activeHelper{}, events: map[string]string{}}
}

// look has Run look at the table soon.
func (h *helpers) look() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run works on sub-sessions and tells of their ends until ctx ends. What runs then
// is broken off: it goes on at the next start from its last message.
func (h *helpers) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := h.step(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Log.Error("sub-sessions", "err", err)
			time.AfterFunc(h.cfg.Again, h.look)
		}
		select {
		case <-ctx.Done():
		case <-h.wake:
		}
	}
	_ = h.group.Wait() // nothing in it returns an error
}

// step does all that can be done now.
func (h *helpers) step(ctx context.Context) error {
	for _, do := range []func(context.Context) error{h.leave, h.failDependents, h.takeUp, h.fill, h.tell} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill gives free places to those that may begin.
func (h *helpers) fill(ctx context.Context) error {
	ready, err := h.startable(ctx)
	if err != nil {
		return err
	}
	for {
		at, ok := h.next(ready)
		if !ok {
			return nil
		}
		n := ready[at]
		ready = slices.Delete(ready, at, at+1)
		changed, err := h.change(ctx, h.cfg.DB, `status = 'running', started = iif(started = 0, ?, started) WHERE id = ? AND status IN ('pending', 'running')`, h.millis(), n.id)
		if err != nil {
			return err
		}
		if changed == 0 { // cancelled meanwhile
			continue
		}
		work, stop := context.WithCancelCause(ctx)
		h.mu.Lock()
		h.active[n.id] = activeHelper{n.room, stop}
		h.mu.Unlock()
		h.group.Go(func() error { h.work(work, n.id); return nil })
	}
}

// next chooses whose turn it is: the oldest of the room that has the fewest at work.
func (h *helpers) next(ready []helper) (best int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.active) >= h.cfg.Helpers.Parallel {
		return 0, false
	}
	at := map[string]int{}
	for _, a := range h.active {
		at[a.room]++
	}
	for i, n := range ready {
		if _, busy := h.active[n.id]; !busy && (!ok || at[n.room] < at[ready[best].room]) {
			best, ok = i, true
		}
	}
	return best, ok
}

// work works on a sub-session until it ends, or must wait for something.
func (h *helpers) work(ctx context.Context, id string) {
	log := h.cfg.Log.With("sub_session", id)
	err := recovered(log, func() error { return h.advance(ctx, id) })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		log.Info("sub-session broken off", "cause", context.Cause(ctx))
	default:
		log.Error("sub-session not worked on", "err", err)
		if !store.Passing(err) {
			err = h.end(ctx, id, helperFailed, "", i18n.New("why.helper_broken"))
		}
		if err != nil { // it is tried again, but not at once
			select {
			case <-ctx.Done():
			case <-time.After(h.cfg.Again):
			}
		}
	}
	h.cfg.Prompt.Leave(history.Talk(subPrefix + id))
	h.mu.Lock()
	stop := h.active[id].stop
	delete(h.active, id)
	h.mu.Unlock()
	stop(nil)
	h.look()
}

// end ends a sub-session, unless it has ended: a cancelled one stays cancelled.
func (h *helpers) end(ctx context.Context, id, status, result string, reason i18n.Text) error {
	_, err := h.change(ctx, h.cfg.DB, `status = ?, result = ?, reason = ?, ended = ? WHERE id = ? AND status = 'running'`, status, result, reason, h.millis(), id)
	return err
}

var errHelperTime = errors.New("session: the sub-session's time is up")

// spawner is what a turn's tools spawn with; nil = there are no sub-sessions.
func (m *Manager) spawner() tool.Spawner {
	if m.helpers == nil {
		return nil
	}
	return m.helpers
}

// layout is what the model calls the mode of a sub-session's prompt.
func (n helper) layout() prompt.Layout {
	if n.mode == "full" {
		return "" // the conversation's
	}
	return n.mode
}
