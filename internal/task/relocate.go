package task

import (
	"context"
	"database/sql"
	"fmt"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

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
	s.store.wakeScheduler()
	return nil
}
