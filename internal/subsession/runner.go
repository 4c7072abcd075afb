// Package subsession runs background work that a conversation spawned. A Job is a row of sub_session,
// its dependencies are rows of sub_session_need, and its messages are in a room of its own, sub:ID.
// One loop (Runner.Run) starts, ends and reports jobs. A job may see what its room may see, and use
// tools that its spawner may use. It never asks for approval.
package subsession

import (
	"cmp"
	"context"
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
	"reverie/internal/idle"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/pace"
	"reverie/internal/profile"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/tool"
)

// Limits bound the sub-sessions of all rooms.
type Limits struct {
	Parallel int           // running at the same time; 0 = disabled
	Depth    int           // nesting of sub-sessions; 0 = 2
	Timeout  time.Duration // of one, unless the job sets it; 0 = 15 min
	Rounds   int           // model requests of one; 0 = 15
}

// Config configures a Runner.
type Config struct {
	DB         *store.DB
	Models     *llm.Models
	Prompt     *prompt.Assembler
	Tools      *tool.Set
	History    *history.Store
	Settings   settings.Store
	Messages   *settings.Messages
	Isolation  memory.Isolation
	Profiles   profile.Store
	RetryDelay time.Duration // before the retry of a failed step
	Now        func() time.Time
	Log        *slog.Logger
	Limits     Limits
	Waiting    *idle.Priority // people, who go before sub-sessions
	// Left reports whether we have left a room. Its sub-sessions are cancelled.
	Left func(ctx context.Context, room string) (bool, error)
}

// Host runs the conversations that spawn sub-sessions.
type Host interface {
	// Deliver puts a system event into the mailbox of its room.
	Deliver(ctx context.Context, in chat.Inbound) error
	// Private reports whether a room is a direct chat with person now.
	Private(ctx context.Context, room, person string) (bool, error)
}

// Prefix begins the name of the timeline in which a sub-session's messages are.
const Prefix = "sub:"

const (
	maxOpen  = 50 // in a room
	minute   = "2006-01-02 15:04"
	chatRole = "chat"
)

// Runner runs the sub-sessions of all rooms. The database holds all state, so that a restart at any
// point continues them.
type Runner struct {
	cfg   Config
	host  Host
	group errgroup.Group
	wake  chan struct{} // holds a token while there may be work

	mu         sync.Mutex
	active     map[string]active // by id
	roomEvents map[string]string // the reported events being handled, by room
}

type active struct {
	room string
	stop context.CancelCauseFunc
}

// New returns a runner; nothing happens before Run.
func New(cfg Config, host Host) *Runner {
	c := &cfg.Limits
	c.Depth, c.Timeout, c.Rounds = cmp.Or(c.Depth, 2), cmp.Or(c.Timeout, 15*time.Minute), cmp.Or(c.Rounds, 15)
	return &Runner{cfg: cfg, host: host, wake: make(chan struct{}, 1),
		active: map[string]active{}, roomEvents: map[string]string{}}
}

// Running returns the number of running sub-sessions.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active)
}

// Wake makes Run check the table soon.
func (r *Runner) Wake() { pace.Wake(r.wake) }

// Run starts sub-sessions and reports their ends until ctx ends. It interrupts the running ones; the
// next start continues them from their last message.
func (r *Runner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("sub-sessions not advanced", "err", err)
			time.AfterFunc(r.cfg.RetryDelay, r.Wake)
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
	}
	_ = r.group.Wait() // nothing in it returns an error
}

// step performs every state change that is due.
func (r *Runner) step(ctx context.Context) error {
	for _, do := range []func(context.Context) error{r.cancelLeftRooms, r.failDependents, r.resumeWaiting, r.startReady, r.reportEnded} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startReady starts sub-sessions while slots are free, the oldest first: interrupted ones, and pending ones
// whose dependencies are complete.
func (r *Runner) startReady(ctx context.Context) error {
	ready, err := queryJobs(ctx, r.cfg.DB, `WHERE reported_at = 0 AND (status = 'running' OR status = 'pending'
		AND NOT EXISTS (SELECT 1 FROM sub_session_need AS w JOIN sub_session AS d ON d.id = w.needs
			WHERE w.node = n.id AND d.status <> 'completed'))
		ORDER BY created, rowid`)
	if err != nil {
		return err
	}
	for {
		at, ok := r.pickNext(ready)
		if !ok {
			return nil
		}
		n := ready[at]
		ready = slices.Delete(ready, at, at+1)
		changed, err := updateJobs(ctx, r.cfg.DB, `status = 'running', started = iif(started = 0, ?, started)
			WHERE id = ? AND status IN ('pending', 'running')`, r.nowMillis(), n.id)
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
		r.group.Go(func() error { r.runJob(work, n.id); return nil })
	}
}

// pickNext chooses the oldest sub-session of the room with the fewest running ones.
func (r *Runner) pickNext(ready []Job) (best int, ok bool) {
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

// runJob advances a sub-session until it ends or has to wait.
func (r *Runner) runJob(ctx context.Context, id string) {
	log := r.cfg.Log.With("sub_session", id)
	err := agent.CatchPanic(log, func() error { return r.advance(ctx, id) })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		log.Info("sub-session interrupted", "cause", context.Cause(ctx))
	default:
		log.Error("sub-session not advanced", "err", err)
		if !store.IsTransient(err) {
			err = r.end(ctx, id, Failed, "", i18n.New("why.helper_broken"))
		}
		if err != nil { // retry later
			_ = pace.Pause(ctx, nil, r.cfg.RetryDelay) // Run notices the end of ctx
		}
	}
	r.cfg.Prompt.Leave(history.Timeline(Prefix + id))
	r.mu.Lock()
	stop := r.active[id].stop
	delete(r.active, id)
	r.mu.Unlock()
	stop(nil)
	r.Wake()
}

// end ends a running sub-session. A cancelled one stays cancelled.
func (r *Runner) end(ctx context.Context, id, status, result string, reason i18n.Text) error {
	_, err := updateJobs(ctx, r.cfg.DB, `status = ?, result = ?, reason = ?, ended = ? WHERE id = ? AND status = 'running'`,
		status, result, reason, r.nowMillis(), id)
	return err
}

var errTimeout = errors.New("subsession: the sub-session's time is up")
