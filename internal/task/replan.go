package task

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reverie/internal/store"
)

// replan works out anew when each task is due next that waits for its time: the
// configured zone may be another one, the rules of a zone may have changed, and a
// clock that was far ahead left times that are far ahead. What is due already stays,
// and what has run does not run again: its run is there.
func (s *Scheduler) replan(ctx context.Context, now time.Time) error {
	tasks, err := tasksOf(ctx, s.store.db, `FROM task t WHERE status = 'active' AND schedule <> '' AND (next_due IS NULL OR next_due > ?3)`+ours,
		s.room, s.without, now.UnixMilli())
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
