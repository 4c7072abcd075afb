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
	"reverie/internal/pace"
	"reverie/internal/store"
)

// Scheduler claims due tasks and hands over each due time exactly once. The rows of job_run record
// that across restarts.
type Scheduler struct {
	store *Store
	cfg   SchedulerConfig

	delivered sync.Map // IDs of runs handed over and not ended
	started   sync.Map // IDs of those that have started

	recomputed bool        // recomputeDue has run; only runDue uses it
	runTimes   []time.Time // hand-over times of model runs in the last 24 hours; only deliver uses it
}

// SchedulerConfig configures a Scheduler. Programs that share a database must serve different rooms.
type SchedulerConfig struct {
	OnlyRoom   string // serve only this room, unless empty …
	ExceptRoom string // … and not this one
	Rooms      rooms
	Log        *slog.Logger // nil = silent
}

// rooms decides where tasks may run.
type rooms interface {
	// Left reports whether we left the room; its tasks are paused.
	Left(ctx context.Context, room string) (bool, error)
	// TaskRoom returns the room where a due task may run: its own, one it moves to, or "" to pause it.
	TaskRoom(ctx context.Context, t Task) (string, error)
}

// NewScheduler returns a scheduler of the tasks in store. Nothing happens before Run.
func NewScheduler(store *Store, cfg SchedulerConfig) *Scheduler {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Scheduler{store: store, cfg: cfg}
}

const (
	// maxWait bounds a sleep: timers stop while the machine sleeps, clocks are set, and other
	// programs change tasks.
	maxWait = 10 * time.Second
	// batch is how many tasks are claimed in one transaction.
	batch = 200
)

// deliverFunc hands over a run and returns at once. After an error it is called again.
type deliverFunc func(ctx context.Context, r Run) error

// Run hands due runs to work until ctx ends. Runs that were open at the last exit come first, with the same IDs.
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
		now := s.store.now().Round(0) // wall clock, without the monotonic one
		next, err := s.runDue(ctx, work, now, now.Before(last))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.cfg.Log.Error("cannot read due tasks; will retry", "in", wait, "err", err)
			timer.Reset(wait)
			wait = min(2*wait, time.Minute)
			continue
		}
		last, wait = now, time.Second
		timer.Reset(max(0, min(next.Sub(s.store.now().Round(0)), maxWait)))
	}
}

// runDue claims and hands over due tasks, and returns when to look again. The first call, and one
// after the clock was set back, recomputes all due times.
func (s *Scheduler) runDue(ctx context.Context, work deliverFunc, now time.Time, clockSetBack bool) (next time.Time, err error) {
	if !s.recomputed || clockSetBack {
		if err := s.recomputeDue(ctx, now); err != nil {
			return next, err
		}
		s.recomputed = true
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
	return s.nextWake(ctx, now)
}

// inOurRooms limits a query to the served rooms.
const inOurRooms = ` AND (?1 = '' OR t.room = ?1) AND t.room <> ?2 `

// claim inserts a run of each due task and advances next_due, in one transaction. It returns the number of tasks.
func (s *Scheduler) claim(ctx context.Context, now time.Time) (int, error) {
	due, err := store.Value[bool](ctx, s.store.db, `SELECT EXISTS (SELECT 1 FROM task t
		WHERE t.status = 'active' AND t.next_due <= ?3`+inOurRooms+`)`,
		s.cfg.OnlyRoom, s.cfg.ExceptRoom, now.UnixMilli())
	if err != nil || !due {
		return 0, err
	}
	claimed := 0
	err = store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		tasks, err := queryTasks(ctx, tx, `FROM task t WHERE t.status = 'active' AND t.next_due <= ?3`+inOurRooms+`
			ORDER BY t.next_due, t.id LIMIT ?4`, s.cfg.OnlyRoom, s.cfg.ExceptRoom, now.UnixMilli(), batch)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if err := s.claimTask(ctx, tx, t, now); err != nil {
				return fmt.Errorf("task #%s: %w", t.ID, err)
			}
		}
		claimed = len(tasks)
		return nil
	})
	return claimed, store.Wrap(err, "claim due tasks")
}

// claimTask inserts the due runs of t by its catch-up policy, and advances next_due.
func (s *Scheduler) claimTask(ctx context.Context, tx *sql.Tx, t Task, now time.Time) error {
	n := 1
	if t.CatchUp == catchAll {
		n = maxCatchUp
	}
	busy, err := s.hasOpenRun(ctx, tx, t)
	if err != nil {
		return err
	}
	for _, due := range s.store.missedTimes(t, now, n) {
		state, why := runClaimed, i18n.Text("")
		switch {
		case t.CatchUp == catchSkip && now.Sub(due) > lateAfter:
			state, why = runSkipped, i18n.New("why.missed")
		case busy && t.CatchUp != catchAll:
			state, why = runSkipped, i18n.New("why.overlap")
		}
		if err := s.insertRun(ctx, tx, t, due, now, state, why); err != nil {
			return err
		}
	}
	return store.Exec(ctx, tx, `UPDATE task SET next_due = ? WHERE id = ?`, s.store.nextDueColumn(*t.Schedule, now, t.Scheduled), t.ID)
}

// hasOpenRun reports whether a run of t is running or waits for a retry. Then no other starts.
func (s *Scheduler) hasOpenRun(ctx context.Context, tx *sql.Tx, t Task) (bool, error) {
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

// insertRun inserts one run unless it exists.
func (s *Scheduler) insertRun(ctx context.Context, tx *sql.Tx, t Task, due, now time.Time, state RunState, why i18n.Text) error {
	var ended any
	if state != runClaimed {
		ended = now.UnixMilli()
	}
	inserted, err := tx.ExecContext(ctx, `INSERT INTO job_run (task, due, state, claimed, ended, result)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (task, due) DO NOTHING`,
		t.ID, due.UnixMilli(), state, now.UnixMilli(), ended, why)
	if err != nil {
		return err
	}
	if n, err := inserted.RowsAffected(); err != nil || n == 0 || state == runClaimed {
		return err
	}
	t.NextDue = time.Time{}
	return s.completeOnce(ctx, tx, Run{Task: t, Due: due}, now, why.String())
}

// deliver hands over claimed runs and notices that were not handed over yet.
func (s *Scheduler) deliver(ctx context.Context, work deliverFunc, now time.Time) error {
	// Two queries, so that each uses its index.
	open, err := s.store.runs(ctx, `r.state = 'claimed' AND (r.retry_at IS NULL OR r.retry_at <= ?3)`+inOurRooms+`ORDER BY r.due, t.id`,
		s.cfg.OnlyRoom, s.cfg.ExceptRoom, now.UnixMilli())
	if err != nil {
		return err
	}
	notices, err := s.store.runs(ctx, `r.notice = 1`+inOurRooms+`ORDER BY r.due, t.id`, s.cfg.OnlyRoom, s.cfg.ExceptRoom)
	if err != nil {
		return err
	}
	for _, r := range append(open, notices...) {
		if _, known := s.delivered.LoadOrStore(r.ID, true); known {
			continue
		}
		deferred, err := s.relocate(ctx, r.Task)
		if err == nil && !deferred {
			deferred, err = s.deferOverLimit(ctx, r, now)
		}
		if err == nil && !deferred {
			if err = work(ctx, r); err == nil && !r.Notice && r.Task.Mode() != Reminder {
				s.runTimes = append(s.runTimes, now)
			}
		}
		if deferred || err != nil {
			s.delivered.Delete(r.ID)
		}
		if err != nil {
			return fmt.Errorf("deliver run %s: %w", r.ID, err)
		}
	}
	return nil
}

// nextWake returns when the next task or retry is due, at most maxWait ahead.
func (s *Scheduler) nextWake(ctx context.Context, now time.Time) (time.Time, error) {
	next := now.Add(maxWait)
	for _, query := range []string{
		`SELECT t.next_due FROM task t WHERE t.status = 'active' AND t.next_due IS NOT NULL` + inOurRooms + `ORDER BY t.next_due LIMIT 1`,
		`SELECT r.retry_at FROM job_run r JOIN task t ON t.id = r.task
			WHERE r.state = 'claimed' AND r.retry_at > ?3` + inOurRooms + `ORDER BY r.retry_at LIMIT 1`,
	} {
		ms, err := store.Value[int64](ctx, s.store.db, query, s.cfg.OnlyRoom, s.cfg.ExceptRoom, now.UnixMilli())
		if err != nil {
			return next, fmt.Errorf("find the next due task: %w", err)
		}
		if at := time.UnixMilli(ms); ms != 0 && at.Before(next) { // 0 = nothing
			next = at
		}
	}
	return next, nil
}

// recomputeDue recomputes the next due time of all tasks. Zone, zone rules or clock may have
// changed. Overdue tasks keep theirs, and runs that happened are not repeated.
func (s *Scheduler) recomputeDue(ctx context.Context, now time.Time) error {
	tasks, err := queryTasks(ctx, s.store.db, `FROM task t
		WHERE status = 'active' AND schedule <> '' AND (next_due IS NULL OR next_due > ?3)`+inOurRooms,
		s.cfg.OnlyRoom, s.cfg.ExceptRoom, now.UnixMilli())
	if err != nil {
		return fmt.Errorf("plan tasks: %w", err)
	}
	changed := map[string]any{}
	for _, t := range tasks {
		if t.Schedule.Type == once { // its moment does not depend on the zone
			continue
		}
		due := s.store.nextDueColumn(*t.Schedule, now, t.Scheduled)
		if ms, ok := due.(int64); !ok || !time.UnixMilli(ms).Equal(t.NextDue) {
			changed[t.ID] = due
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		for id, due := range changed {
			if _, err := tx.ExecContext(ctx, `UPDATE task SET next_due = ? WHERE id = ? AND status = 'active'`, due, id); err != nil {
				return fmt.Errorf("plan task #%s: %w", id, err)
			}
		}
		return nil
	})
}

const leftReason = i18n.Text("I am no longer in this room") // why tasks of a left room are paused

// otherReadersReason explains a pause because others can read the task's room.
var otherReadersReason = i18n.New("why.others_read")

// relocate reports whether t must not run in its room, after pausing or moving it. Due tasks of a
// room that we left are paused. A task whose room has other readers moves, with its open runs, to
// the room of its own readers; without such a room it is paused.
func (s *Scheduler) relocate(ctx context.Context, t Task) (bool, error) {
	if left, err := s.cfg.Rooms.Left(ctx, t.Room); err != nil {
		return false, err
	} else if left {
		return true, s.pauseTasks(ctx, `room = ?3`, `status = 'active' AND schedule <> ''`, t.Room, leftReason)
	}
	room, err := s.cfg.Rooms.TaskRoom(ctx, t)
	if err != nil || room == t.Room {
		return false, err
	}
	s.cfg.Log.Warn("others can read a task's room", "task", t.ID, "room", t.Room, "moved", room != "")
	if room == "" {
		return true, s.pauseTasks(ctx, `id = ?3`, `(status = 'active' OR status = 'paused' AND reason = '')`, t.ID, otherReadersReason)
	}
	return true, s.inTx(ctx, "move a task to another room", func(tx *sql.Tx) error {
		now := s.store.now().UnixMilli() // its open runs restart there as new attempts
		_, err := tx.ExecContext(ctx, `UPDATE job_run SET attempt = attempt + 1, retry_at = ?
			WHERE state = 'claimed' AND task = ?`, now, t.ID)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE task SET room = ?, updated = ? WHERE id = ?`, room, now, t.ID)
		}
		return err
	})
}

// pauseTasks ends the runs of the tasks that match where. It pauses those that also match
// alsoWhere.
func (s *Scheduler) pauseTasks(ctx context.Context, where, alsoWhere, arg string, reason i18n.Text) error {
	return s.inTx(ctx, "pause tasks", func(tx *sql.Tx) error {
		now := s.store.now().UnixMilli()
		_, err := tx.ExecContext(ctx, `UPDATE job_run SET state = iif(state = 'claimed', 'skipped', state),
			ended = iif(state = 'claimed', ?1, ended), result = iif(state = 'claimed', ?2, result),
			retry_at = NULL, notice = iif(notice = 1, 2, notice)
			WHERE (state = 'claimed' OR notice = 1) AND task IN (SELECT id FROM task WHERE `+where+`)`, now, reason, arg)
		if err != nil {
			return err
		}
		paused, err := tx.ExecContext(ctx, `UPDATE task SET status = 'paused', next_due = NULL, reason = ?2, updated = ?1
			WHERE `+where+` AND `+alsoWhere, now, reason, arg)
		if err != nil {
			return err
		}
		if n, err := paused.RowsAffected(); err != nil || n == 0 {
			return err
		}
		s.cfg.Log.Info("tasks are paused", "where", arg, "why", reason)
		return nil
	})
}

// inTx runs do in a transaction and wakes the scheduler.
func (s *Scheduler) inTx(ctx context.Context, what string, do func(*sql.Tx) error) error {
	if err := store.InTx(ctx, s.store.db, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	pace.Wake(s.store.wake)
	return nil
}
