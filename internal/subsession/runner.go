// Package subsession works in the background. Each sub-session is a row of sub_session, and those it
// waits for are rows of sub_session_need; its messages are in a room of its own, sub:ID. One loop
// (Runner.Run) starts, ends and reports them. A sub-session sees what its room sees and uses the
// tools of the person who asked; it asks for no approval.
package subsession

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/tool"
)

// Limits bound the sub-sessions.
type Limits struct {
	Parallel int           // at the same time, over all rooms; 0 = there are none
	Depth    int           // how deep they may ask for others; 0 = 2
	Timeout  time.Duration // of work, unless the job says it; 0 = 15 min
	Rounds   int           // requests to the model for each; 0 = 15
}

// Config is what a runner works with.
type Config struct {
	DB        *sql.DB
	Models    *llm.Models
	Prompt    *prompt.Assembler
	Tools     *tool.Set
	History   *history.Store
	Settings  settings.Store
	Messages  *settings.Messages
	Isolation memory.Isolation
	Location  *time.Location
	Again     time.Duration // until the first new try to do what could not be done
	Now       func() time.Time
	Log       *slog.Logger
	Limits    Limits
	// Left tells whether a room has been left: nothing is worked on for it.
	Left func(ctx context.Context, room string) (bool, error)
}

// Host is what the sub-sessions are asked for in.
type Host interface {
	// Deliver takes a system event into the lane of its room.
	Deliver(ctx context.Context, in chat.Inbound) error
	// Private reports whether a room is a direct chat with person now.
	Private(ctx context.Context, room, person string) (bool, error)
	// Yield returns when no person waits for model, or ctx has ended.
	Yield(ctx context.Context, model string) error
}

const (
	mostOpen  = 50     // in a room
	subPrefix = "sub:" // of the room in which a sub-session's messages are
	minute    = "2006-01-02 15:04"
	chatRole  = "chat"
)

// Runner runs the sub-sessions of all rooms. What is to be done stands in the
// database alone: the program may end at any point and goes on from there.
type Runner struct {
	cfg   Config
	host  Host
	group errgroup.Group
	wake  chan struct{} // holds a token while there may be something to do

	mu     sync.Mutex
	active map[string]active // by id
	events map[string]string // those that a room works on: by room, the event
}

// active is a sub-session that is being worked on.
type active struct {
	room string
	stop context.CancelCauseFunc
}

// New returns a runner; nothing happens before Run.
func New(cfg Config, host Host) *Runner {
	c := &cfg.Limits
	c.Depth, c.Timeout, c.Rounds = cmp.Or(c.Depth, 2), cmp.Or(c.Timeout, 15*time.Minute), cmp.Or(c.Rounds, 15)
	return &Runner{cfg: cfg, host: host, wake: make(chan struct{}, 1),
		active: map[string]active{}, events: map[string]string{}}
}

// Running is how many sub-sessions are worked on now.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active)
}

// Wake has Run look at the table soon.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run works on sub-sessions and tells of their ends until ctx ends. What runs then
// is broken off: it goes on at the next start from its last message.
func (r *Runner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("sub-sessions", "err", err)
			time.AfterFunc(r.cfg.Again, r.Wake)
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
	}
	_ = r.group.Wait() // nothing in it returns an error
}

// step does all that can be done now.
func (r *Runner) step(ctx context.Context) error {
	for _, do := range []func(context.Context) error{r.leave, r.failDependents, r.takeUp, r.fill, r.tell} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill gives free places to those that may begin.
func (r *Runner) fill(ctx context.Context) error {
	ready, err := r.startable(ctx)
	if err != nil {
		return err
	}
	for {
		at, ok := r.next(ready)
		if !ok {
			return nil
		}
		n := ready[at]
		ready = slices.Delete(ready, at, at+1)
		changed, err := change(ctx, r.cfg.DB, `status = 'running', started = iif(started = 0, ?, started)
			WHERE id = ? AND status IN ('pending', 'running')`, r.millis(), n.id)
		if err != nil {
			return err
		}
		if changed == 0 { // cancelled meanwhile
			continue
		}
		work, stop := context.WithCancelCause(ctx)
		r.mu.Lock()
		r.active[n.id] = active{n.room, stop}
		r.mu.Unlock()
		r.group.Go(func() error { r.work(work, n.id); return nil })
	}
}

// next chooses whose turn it is: the oldest of the room that has the fewest at work.
func (r *Runner) next(ready []Job) (best int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.active) >= r.cfg.Limits.Parallel {
		return 0, false
	}
	at := map[string]int{}
	for _, a := range r.active {
		at[a.room]++
	}
	for i, n := range ready {
		if _, busy := r.active[n.id]; !busy && (!ok || at[n.room] < at[ready[best].room]) {
			best, ok = i, true
		}
	}
	return best, ok
}

// work works on a sub-session until it ends, or must wait for something.
func (r *Runner) work(ctx context.Context, id string) {
	log := r.cfg.Log.With("sub_session", id)
	err := agent.CatchPanic(log, func() error { return r.advance(ctx, id) })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		log.Info("sub-session broken off", "cause", context.Cause(ctx))
	default:
		log.Error("sub-session not worked on", "err", err)
		if !store.Passing(err) {
			err = r.end(ctx, id, Failed, "", i18n.New("why.helper_broken"))
		}
		if err != nil { // it is tried again, but not at once
			select {
			case <-ctx.Done():
			case <-time.After(r.cfg.Again):
			}
		}
	}
	r.cfg.Prompt.Leave(history.Talk(subPrefix + id))
	r.mu.Lock()
	stop := r.active[id].stop
	delete(r.active, id)
	r.mu.Unlock()
	stop(nil)
	r.Wake()
}

// end ends a sub-session, unless it has ended: a cancelled one stays cancelled.
func (r *Runner) end(ctx context.Context, id, status, result string, reason i18n.Text) error {
	_, err := change(ctx, r.cfg.DB, `status = ?, result = ?, reason = ?, ended = ? WHERE id = ? AND status = 'running'`,
		status, result, reason, r.millis(), id)
	return err
}

var errTime = errors.New("subsession: the sub-session's time is up")
