package history

import (
	"context"
	"database/sql"
	"fmt"

	"reverie/internal/store"
)

// StartWith begins a new conversation in the room of c that has the summary of c to go
// on from, and sets ID and Conversation. Both happen, or nothing does.
func (s *Store) StartWith(ctx context.Context, c *Compaction) error {
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `UPDATE room SET conversation = conversation + 1 WHERE id = ? RETURNING conversation`, c.Room).Scan(&c.Conversation)
		if err != nil {
			return err
		}
		s.reached("begun")
		c.From, c.To, c.Messages, c.Shortened = 0, 0, 0, 0
		if err := carry(ctx, tx, c); err != nil {
			return err
		}
		s.reached("carried")
		return nil
	})
	if err != nil {
		return fmt.Errorf("start conversation: %w", err)
	}
	s.reached("kept")
	return nil
}
