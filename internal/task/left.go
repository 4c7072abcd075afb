package task

import (
	"context"
	"database/sql"
	"fmt"

	"reverie/internal/store"
)

// leftReason is why the tasks of a room are paused that we are no longer in.
const leftReason = "I am no longer in this room"

// left reports whether we have left room. Then its tasks that would fall due are
// paused, and their runs are over: nobody could read what comes of them.
func (s *Scheduler) left(ctx context.Context, room string) (bool, error) {
	if s.Left == nil {
		return false, nil
	}
	if gone, err := s.Left(ctx, room); err != nil || !gone {
		return false, err
	}
	now, paused := s.store.now().UnixMilli(), int64(0)
	err := store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		for _, query := range []string{
			`UPDATE job_run SET state = 'skipped', ended = ?1, retry_at = NULL, result = ?2
			WHERE state = 'claimed' AND task IN (SELECT id FROM task WHERE room = ?3)`,
			`UPDATE job_run SET notice = 2 WHERE notice = 1 AND task IN (SELECT id FROM task WHERE room = ?3) AND ?1 > 0 AND ?2 <> ''`,
			`UPDATE task SET status = 'paused', next_due = NULL, reason = ?2, updated = ?1 WHERE room = ?3 AND status = 'active' AND schedule <> ''`,
		} {
			done, err := tx.ExecContext(ctx, query, now, leftReason, room)
			if err != nil {
				return err
			}
			paused, _ = done.RowsAffected() // of the last one
		}
		return nil
	})
	if err != nil {
		return true, fmt.Errorf("pause the tasks of a room: %w", err)
	}
	if paused > 0 {
		s.log.Info("tasks are paused: no longer in their room", "room", room, "tasks", paused)
	}
	return true, nil
}
