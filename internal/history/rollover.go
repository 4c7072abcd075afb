package history

import (
	"context"
	"fmt"
	"strings"
)

// StartWith begins a new conversation in the room of c that has the summary of c to go
// on from, and sets ID and Conversation. Both happen, or nothing does.
func (s *Store) StartWith(ctx context.Context, c *Compaction) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("start conversation: %w", err)
	}
	defer tx.Rollback() // nothing after Commit
	err = tx.QueryRowContext(ctx, `UPDATE room SET conversation = conversation + 1 WHERE id = ? RETURNING conversation`, c.Room).Scan(&c.Conversation)
	if err != nil {
		return fmt.Errorf("start conversation: %w", err)
	}
	s.reached("begun")
	c.From, c.To, c.Messages, c.Shortened = 0, 0, 0, 0
	err = tx.QueryRowContext(ctx, `INSERT INTO compaction
		(room, conversation, from_message, to_message, messages, shortened, level, reason, summary, details, tokens_before, tokens_after, at, integrity)
		VALUES (?, ?, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		c.Room, c.Conversation, c.Level, c.Reason, c.Summary, strings.Join(c.Details, "\n"), c.Before, c.After, millis(c.At), c.Integrity).Scan(&c.ID)
	if err != nil {
		return fmt.Errorf("start conversation: %w", err)
	}
	s.reached("carried")
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("start conversation: %w", err)
	}
	s.reached("kept")
	return nil
}
