package task

import (
	"context"
	"fmt"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// redactedText replaces content and reason of a task whose message was redacted.
const redactedText = "[taken back]"

// openFromMessages selects the open tasks of room ?1 made for one of the messages ?2.
const openFromMessages = `room = ?1 AND source_event <> '' AND source_event IN (SELECT value FROM json_each(?2))
	AND status IN ('active', 'paused')`

// FromMessages counts the tasks made for one of events. It counts those that may be read at the
// place. It counts open ones and those that DeleteFromMessages deleted, and returns the content of
// all open ones.
func (s *Store) FromMessages(ctx context.Context, at trust.Place, events []string) (n int, words []string, err error) {
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
	}, `SELECT iif(status = 'deleted', '', content), readers FROM task WHERE `+openFromMessages+`
		OR room = ?1 AND source_event <> '' AND source_event IN (SELECT value FROM json_each(?2)) AND status = 'deleted' AND reason = ?3`,
		at.Room, store.Array(events), redactedText)
	return n, words, store.Wrap(err, "tasks of a message")
}

// DeleteFromMessages deletes the open tasks of room made for one of events. It clears their texts.
// Readers are not checked: nothing of a redacted message stays. It is idempotent.
func (s *Store) DeleteFromMessages(ctx context.Context, room string, events []string) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE task SET status = 'deleted', reason = ?3, content = ?3,
		prompt = '', last_result = '', next_due = NULL, updated = ?4 WHERE `+openFromMessages,
		room, store.Array(events), redactedText, s.now().UnixMilli()); err != nil {
		return fmt.Errorf("delete tasks of a redacted message: %w", err)
	}
	s.wakeScheduler()
	return nil
}
