package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/task"
)

const (
	planned     = 10_000 // tasks with a schedule
	dueTogether = 100    // of them due at the same moment
	idleFor     = 20 * time.Second
)

// tasks measures the scheduler with many tasks: its CPU time while nothing is due, and the delay of
// tasks that are due at the same time.
func (b *bench) tasks(ctx context.Context, dir string) error {
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := planTasks(ctx, db); err != nil {
		return err
	}
	s := task.NewScheduler(task.NewStore(db, task.Config{}), task.SchedulerConfig{Rooms: anyRoom{}})
	var mu sync.Mutex
	var late []float64
	handed := make(chan task.Run, dueTogether)
	work := func(_ context.Context, r task.Run) error {
		mu.Lock()
		late = append(late, float64(time.Since(r.Due).Microseconds())/1000)
		mu.Unlock()
		handed <- r
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx, work) })
	defer running.Wait()
	defer cancel()
	before, err := awaitIdle() // the start schedules all tasks
	if err != nil {
		return err
	}
	time.Sleep(idleFor)
	after, err := cpu()
	if err != nil {
		return err
	}
	// Like a change by another program, which the scheduler notices within ten seconds.
	due := time.Now().Add(12 * time.Second).Truncate(time.Second)
	if _, err := db.ExecContext(ctx, `UPDATE task SET schedule = ?, next_due = ? WHERE rowid IN (SELECT rowid FROM task LIMIT ?)`,
		fmt.Sprintf(`{"schedule_type":"once","at":%q}`, due.Format(time.RFC3339)), due.UnixMilli(), dueTogether); err != nil {
		return err
	}
	for range dueTogether {
		select {
		case r := <-handed:
			if err := s.Done(ctx, r.ID, "", nil); err != nil {
				return err
			}
		case <-time.After(time.Minute):
			return errors.New("not all tasks that are due were handed over")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(late)
	name := fmt.Sprintf("%d tasks: ", planned)
	b.put(
		figure{What: name + "processor while nothing is due", Value: 100 * (after - before).Seconds() / idleFor.Seconds(), Unit: "%", Limit: 1},
		figure{What: name + fmt.Sprintf("%d due at once, 99 of 100 sooner", dueTogether), Value: late[len(late)*99/100-1], Unit: "ms", Limit: 200},
	)
	return nil
}

// planTasks stores tasks that are due on other days.
func planTasks(ctx context.Context, db *store.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	now := time.Now()
	for i := range planned {
		due := now.Add(48*time.Hour + time.Duration(i)*time.Minute)
		if _, err := tx.ExecContext(ctx, `INSERT INTO task (id, room, user, content, priority, status, schedule, created, updated, scheduled, next_due)
			VALUES (?, ?, '@you:localhost', 'a task', 5, 'active', ?, ?, ?, ?, ?)`, fmt.Sprintf("task_%08d", i), fmt.Sprintf("!%d", i%500),
			fmt.Sprintf(`{"schedule_type":"monthly","day_of_month":%d,"at":%q}`, due.UTC().Day(), due.UTC().Format("15:04")),
			now.UnixMilli(), now.UnixMilli(), now.UnixMilli(), due.UnixMilli()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// cpu returns the CPU time of this process.
func cpu() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// awaitIdle waits for a second without CPU use and returns the CPU time until then.
func awaitIdle() (time.Duration, error) {
	last, err := cpu()
	for range 60 {
		if err != nil {
			return 0, err
		}
		time.Sleep(time.Second)
		var now time.Duration
		if now, err = cpu(); err == nil && now-last < 10*time.Millisecond {
			return now, nil
		}
		last = now
	}
	return last, err
}

// anyRoom is the room of all tasks.
type anyRoom struct{}

func (anyRoom) Left(context.Context, string) (bool, error) { return false, nil }

func (anyRoom) TaskRoom(_ context.Context, t task.Task) (string, error) { return t.Room, nil }
