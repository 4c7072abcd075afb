package task

import (
	"context"
	"fmt"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// takenBack is why a task was deleted whose message was taken back, and what stands in
// the place of its words.
const takenBack = "[taken back]"

// madeFor is the condition for the tasks of the room ?1 that were made for one of the
// messages ?2, and are to go with it: what is done stays.
const madeFor = `room = ?1 AND origin <> '' AND origin IN (SELECT value FROM json_each(?2)) AND status IN ('active', 'paused')`

// MadeFor counts the tasks that were made for one of events, are open or were deleted by TakeBack, and
// may be read at the place. It returns the words of all open ones.
func (s *Store) MadeFor(ctx context.Context, at trust.Place, events []string) (n int, words []string, err error) {
	err = store.Each(ctx, s.db, func(row store.Row) error {
		var content string
		var readers trust.Readers
		err := row.Scan(&content, &readers)
		if err == nil && at.MayRead(readers) {
			n++
		}
		if content != "" {
			words = append(words, content)
		}
		return err
	}, `SELECT iif(status = 'deleted', '', content), readers FROM task WHERE `+madeFor+`
		OR room = ?1 AND origin <> '' AND origin IN (SELECT value FROM json_each(?2)) AND status = 'deleted' AND reason = ?3`,
		at.Room, store.Array(events), takenBack)
	return n, words, store.Wrap(err, "tasks of a message")
}

// TakeBack deletes the open tasks of room that were made for one of events, with their
// words, whoever may read them: nothing of a message that was taken back stays. It may be repeated.
func (s *Store) TakeBack(ctx context.Context, room string, events []string) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE task SET status = 'deleted', reason = ?3, content = ?3,
		prompt = '', last_result = '', next_due = NULL, updated = ?4 WHERE `+madeFor,
		room, store.Array(events), takenBack, s.now().UnixMilli()); err != nil {
		return fmt.Errorf("take back tasks: %w", err)
	}
	s.poke()
	return nil
}
