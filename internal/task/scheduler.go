package task

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// Scheduler finds out which tasks are due, and hands each due time over exactly
// once: the rows of job_run say which, and they outlive the program.
type Scheduler struct {
	store *Store
	cfg   SchedulerConfig

	delivered sync.Map // ids of runs that are not over
	begun     sync.Map // ids of those that are worked on

	planned bool        // replan has run; only look uses it
	ran     []time.Time // when each run of the last 24 hours was handed over that the model works on; only deliver uses it
}

// SchedulerConfig says what a Scheduler looks after. Of two programs on one database each must
// look after rooms of its own.
type SchedulerConfig struct {
	Room    string // only what belongs to it, unless empty …
	Without string // … and not to this one
	Rooms   rooms
	Log     *slog.Logger // nil = silent
}

// rooms says where tasks may be worked on.
type rooms interface {
	// Left reports whether a room has been left: its tasks are paused instead.
	Left(ctx context.Context, room string) (bool, error)
	// TaskRoom is the room in which a task that is due may be worked on: its own, another one to
	// which it moves, or "" if it is to be paused.
	TaskRoom(ctx context.Context, t Task) (string, error)
}

// NewScheduler returns a scheduler of the tasks in store; nothing happens before Run.
func NewScheduler(store *Store, cfg SchedulerConfig) *Scheduler {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Scheduler{store: store, cfg: cfg}
}

const (
	// longestWait until the next look, whatever is due: timers do not count the time
	// for which a machine sleeps, clocks are set, and other programs change tasks.
	longestWait = 10 * time.Second
	// batch is how many tasks are claimed in one transaction.
	batch = 200
)

// deliver hands a run to whoever works on it, and returns at once. After an error it is tried
// again with the next look.
type deliver func(ctx context.Context, r Run) error

// Run hands what falls due to work until ctx ends. What was handed over before and is
// not over comes first, under the same IDs.
func (s *Scheduler) Run(ctx context.Context, work func(ctx context.Context, r Run) error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time
	wait := time.Second
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.store.wake:
		}
		now := s.store.now().Round(0) // by the clock on the wall
		next, err := s.look(ctx, work, now, now.Before(last))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.cfg.Log.Error("cannot look what is due; trying again", "in", wait, "err", err)
			timer.Reset(wait)
			wait = min(2*wait, time.Minute)
			continue
		}
		last, wait = now, time.Second
		timer.Reset(max(0, min(next.Sub(s.store.now().Round(0)), longestWait)))
	}
}

// look claims and hands over what is due now, and returns when something will be. The first look, and
// one after the clock was set back, plan anew.
func (s *Scheduler) look(ctx context.Context, work deliver, now time.Time, back bool) (next time.Time, err error) {
	if !s.planned || back {
		if err := s.replan(ctx, now); err != nil {
			return next, err
		}
		s.planned = true
	}
	for {
		n, err := s.claim(ctx, now)
		if err != nil {
			return next, err
		}
		if n < batch {
			break
		}
	}
	if err := s.deliver(ctx, work, now); err != nil {
		return next, err
	}
	return s.next(ctx, now)
}

// ours limits a query to the rooms that are looked after.
const ours = ` AND (?1 = '' OR t.room = ?1) AND t.room <> ?2 `

// claim makes a run of each task that is due, and moves the task on to its next
// time, in one transaction. It returns how many tasks it looked at.
func (s *Scheduler) claim(ctx context.Context, now time.Time) (int, error) {
	due, err := store.Value[bool](ctx, s.store.db, `SELECT EXISTS (SELECT 1 FROM task t
		WHERE t.status = 'active' AND t.next_due <= ?3`+ours+`)`,
		s.cfg.Room, s.cfg.Without, now.UnixMilli())
	if err != nil || !due {
		return 0, err
	}
	looked := 0
	err = store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		tasks, err := tasksOf(ctx, tx, `FROM task t WHERE t.status = 'active' AND t.next_due <= ?3`+ours+`
			ORDER BY t.next_due, t.id LIMIT ?4`, s.cfg.Room, s.cfg.Without, now.UnixMilli(), batch)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if err := s.claimOne(ctx, tx, t, now); err != nil {
				return fmt.Errorf("task #%s: %w", t.ID, err)
			}
		}
		looked = len(tasks)
		return nil
	})
	return looked, store.Wrap(err, "claim what is due")
}

// claimOne makes the runs of t that are due, by its policy, and moves it on.
func (s *Scheduler) claimOne(ctx context.Context, tx *sql.Tx, t Task, now time.Time) error {
	n := 1
	if t.CatchUp == catchAll {
		n = maxCatchUp
	}
	busy, err := s.busy(ctx, tx, t)
	if err != nil {
		return err
	}
	for _, due := range s.store.missed(t, now, n) {
		state, why := runClaimed, i18n.Text("")
		switch {
		case t.CatchUp == catchSkip && now.Sub(due) > lateAfter:
			state, why = runSkipped, i18n.New("why.missed")
		case busy && t.CatchUp != catchAll:
			state, why = runSkipped, i18n.New("why.overlap")
		}
		if err := s.insert(ctx, tx, t, due, now, state, why); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE task SET next_due = ? WHERE id = ?`, s.store.due(*t.Schedule, now, t.Scheduled), t.ID)
	return err
}

// busy reports whether a run of t is worked on, or waits to be tried again: another
// beside it would only make a queue.
func (s *Scheduler) busy(ctx context.Context, tx *sql.Tx, t Task) (bool, error) {
	busy := false
	err := store.Each(ctx, tx, func(row store.Row) error {
		var due int64
		var attempt string
		var waits bool
		err := row.Scan(&due, &attempt, &waits)
		_, delivered := s.delivered.Load(runID(t.ID, time.UnixMilli(due), attempt))
		busy = busy || waits || delivered
		return err
	}, `SELECT due, attempt, retry_at IS NOT NULL FROM job_run WHERE task = ? AND state = 'claimed'`, t.ID)
	return busy, err
}

// insert makes one run, unless it was made before.
func (s *Scheduler) insert(ctx context.Context, tx *sql.Tx, t Task, due, now time.Time, state RunState, why i18n.Text) error {
	var ended any
	if state != runClaimed {
		ended = now.UnixMilli()
	}
	made, err := tx.ExecContext(ctx, `INSERT INTO job_run (task, due, state, claimed, ended, result)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (task, due) DO NOTHING`,
		t.ID, due.UnixMilli(), state, now.UnixMilli(), ended, why)
	if err != nil {
		return err
	}
	if n, err := made.RowsAffected(); err != nil || n == 0 || state == runClaimed {
		return err
	}
	t.NextDue = time.Time{}
	return s.over(ctx, tx, Run{Task: t, Due: due}, now, why.String())
}

// deliver hands over what is claimed and was not handed over yet.
func (s *Scheduler) deliver(ctx context.Context, work deliver, now time.Time) error {
	// Two queries, so that each has its index.
	open, err := s.store.runs(ctx, `r.state = 'claimed' AND (r.retry_at IS NULL OR r.retry_at <= ?3)`+ours+`ORDER BY r.due, t.id`,
		s.cfg.Room, s.cfg.Without, now.UnixMilli())
	if err != nil {
		return err
	}
	notices, err := s.store.runs(ctx, `r.notice = 1`+ours+`ORDER BY r.due, t.id`, s.cfg.Room, s.cfg.Without)
	if err != nil {
		return err
	}
	for _, r := range append(open, notices...) {
		if _, known := s.delivered.LoadOrStore(r.ID, true); known {
			continue
		}
		gone, err := s.misplaced(ctx, r.Task)
		if err == nil && !gone {
			gone, err = s.putOff(ctx, r, now)
		}
		if err == nil && !gone {
			if err = work(ctx, r); err == nil && !r.Notice && r.Task.Mode() != Reminder {
				s.ran = append(s.ran, now)
			}
		}
		if gone || err != nil {
			s.delivered.Delete(r.ID)
		}
		if err != nil {
			return fmt.Errorf("hand over run %s: %w", r.ID, err)
		}
	}
	return nil
}

// next is when something will be due.
func (s *Scheduler) next(ctx context.Context, now time.Time) (time.Time, error) {
	next := now.Add(longestWait)
	for _, query := range []string{
		`SELECT t.next_due FROM task t WHERE t.status = 'active' AND t.next_due IS NOT NULL` + ours + `ORDER BY t.next_due LIMIT 1`,
		`SELECT r.retry_at FROM job_run r JOIN task t ON t.id = r.task
			WHERE r.state = 'claimed' AND r.retry_at > ?3` + ours + `ORDER BY r.retry_at LIMIT 1`,
	} {
		ms, err := store.Value[int64](ctx, s.store.db, query, s.cfg.Room, s.cfg.Without, now.UnixMilli())
		if err != nil {
			return next, fmt.Errorf("look what is due next: %w", err)
		}
		if at := time.UnixMilli(ms); ms != 0 && at.Before(next) { // 0 = nothing
			next = at
		}
	}
	return next, nil
}

// replan works out anew when each task is due next that waits for its time: the zone, its rules or
// the clock may be others. What is due already stays, and what has run does not run again.
func (s *Scheduler) replan(ctx context.Context, now time.Time) error {
	tasks, err := tasksOf(ctx, s.store.db, `FROM task t
		WHERE status = 'active' AND schedule <> '' AND (next_due IS NULL OR next_due > ?3)`+ours,
		s.cfg.Room, s.cfg.Without, now.UnixMilli())
	if err != nil {
		return fmt.Errorf("plan tasks: %w", err)
	}
	moved := map[string]any{}
	for _, t := range tasks {
		if t.Schedule.Type == once { // its moment is the same everywhere, and without one it is under way
			continue
		}
		due := s.store.due(*t.Schedule, now, t.Scheduled)
		if ms, ok := due.(int64); !ok || !time.UnixMilli(ms).Equal(t.NextDue) {
			moved[t.ID] = due
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		for id, due := range moved {
			if _, err := tx.ExecContext(ctx, `UPDATE task SET next_due = ? WHERE id = ? AND status = 'active'`, due, id); err != nil {
				return fmt.Errorf("plan task #%s: %w", id, err)
			}
		}
		return nil
	})
}
