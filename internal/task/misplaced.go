package task

import (
	"context"
	"database/sql"
	"fmt"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// misplacedReason is why a task is paused whose room others read than may read the task.
var misplacedReason = i18n.New("why.others_read")

// misplaced reports whether t may not be worked on in its room, because others than its
// readers read that. Then t moves to the room where its readers read, and its open runs with
// it; without such a room it is paused.
func (s *Scheduler) misplaced(ctx context.Context, t Task) (bool, error) {
	if s.Room == nil {
		return false, nil
	}
	room, err := s.Room(ctx, t)
	if err != nil || room == t.Room {
		return false, err
	}
	now := s.store.now().UnixMilli()
	queries, args := pauseTask, []any{now, misplacedReason, t.ID}
	if room != "" {
		queries, args = moveTask, []any{now, room, t.ID}
	}
	err = store.InTx(ctx, s.store.db, func(tx *sql.Tx) error {
		for _, query := range queries {
			if _, err := tx.ExecContext(ctx, query, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return true, fmt.Errorf("find task #%s another room: %w", t.ID, err)
	}
	s.log.Warn("others than a task's readers read its room", "task", t.ID, "room", t.Room, "moved", room != "")
	s.store.poke()
	return true, nil
}

// moveTask moves the task ?3 to the room ?2. Its open runs begin anew there, as other attempts.
var moveTask = []string{
	`UPDATE job_run SET attempt = attempt + 1, retry_at = ?1 WHERE state = 'claimed' AND task = ?3 AND ?2 <> ''`,
	`UPDATE task SET room = ?2, updated = ?1 WHERE id = ?3`,
}

// pauseTask pauses the task ?3 for the reason ?2, and ends its open runs.
var pauseTask = []string{
	`UPDATE job_run SET state = 'skipped', ended = ?1, retry_at = NULL, result = ?2 WHERE state = 'claimed' AND task = ?3`,
	`UPDATE job_run SET notice = 2 WHERE notice = 1 AND task = ?3 AND ?1 > 0 AND ?2 <> ''`,
	`UPDATE task SET status = 'paused', next_due = NULL, reason = ?2, updated = ?1
		WHERE id = ?3 AND (status = 'active' OR status = 'paused' AND reason = '')`,
}
