package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Compaction is a section of a conversation that is replaced by a summary.
type Compaction struct {
	ID           int64 // increases over all rooms; 0 = no compaction
	Room         Timeline
	Conversation int64
	Messages     int // number of summarised messages
	Shortened    int // number of messages sent shortened
	Level        compactionLevel
	Reason       string   // what triggered it
	Summary      string   // of everything before, earlier summaries included
	Details      []string // lines that are kept verbatim
	Before       int      // tokens of the history before
	After        int      // tokens of summary, details and remaining history
	At           time.Time

	Integrity trust.Integrity // the lowest of its sources
}

// compactionLevel is the kind of a compaction.
type compactionLevel string

// The levels.
const (
	Trimmed   compactionLevel = "trim"    // messages were shortened
	Summary   compactionLevel = "summary" // a model summarised
	Extracted compactionLevel = "extract" // the program extracted sentences
)

// Text is the summary with details as the model gets it; empty if nothing was summarised.
func (c Compaction) Text() string {
	parts := []string{strings.TrimSpace(c.Summary)}
	if len(c.Details) > 0 {
		parts = append(parts, "Word for word:\n- "+strings.Join(c.Details, "\n- "))
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// LatestCompaction returns the newest compaction of the current conversation of room that was not
// undone; zero = none.
func (s *Store) LatestCompaction(ctx context.Context, room Timeline) (Compaction, error) {
	var c Compaction
	var details string
	var at int64
	ok, err := store.Found(s.db.QueryRowContext(ctx, `SELECT id, room, conversation, messages, shortened,
			level, reason, summary, details, tokens_before, tokens_after, at, integrity
		FROM compaction WHERE room = ?1 AND conversation = (SELECT conversation FROM room WHERE id = ?1)
		ORDER BY id DESC LIMIT 1`, room).
		Scan(&c.ID, &c.Room, &c.Conversation, &c.Messages, &c.Shortened,
			&c.Level, &c.Reason, &c.Summary, &details, &c.Before, &c.After, &at, &c.Integrity))
	if !ok {
		return Compaction{}, store.Wrap(err, "read compaction")
	}
	if details != "" {
		c.Details = strings.Split(details, "\n")
	}
	c.At = time.UnixMilli(at).UTC()
	return c, nil
}

// Compact stores c for the current conversation of its room and sets ID and Conversation. The
// messages gone are no longer loaded; those in shorter get the text they have there. If one of them
// is not loaded any more, it returns an error and changes nothing.
func (s *Store) Compact(ctx context.Context, c *Compaction, gone, shorter []Message) error {
	c.Messages, c.Shortened = len(gone), len(shorter)
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		if err := c.insert(ctx, tx); err != nil {
			return err
		}
		for _, m := range gone {
			mark := `UPDATE message SET retired = 1, compaction = ? WHERE ` + loadedCondition + ` AND id = ?`
			if err := expectOneRow(tx.ExecContext(ctx, mark, c.ID, c.Room, c.Room, m.ID)); err != nil {
				return fmt.Errorf("message %d: %w", m.ID, err)
			}
		}
		for _, m := range shorter {
			shorten := `UPDATE message SET short = ? WHERE ` + loadedCondition + ` AND id = ?`
			if err := expectOneRow(tx.ExecContext(ctx, shorten, m.Text, c.Room, c.Room, m.ID)); err != nil {
				return fmt.Errorf("message %d: %w", m.ID, err)
			}
		}
		return nil
	})
	return store.Wrap(err, "compact")
}

// insert stores c for the current conversation of its room, and sets ID and Conversation.
func (c *Compaction) insert(ctx context.Context, tx *sql.Tx) error {
	return tx.QueryRowContext(ctx, `INSERT INTO compaction (room, conversation, messages, shortened,
			level, reason, summary, details, tokens_before, tokens_after, at, integrity)
		SELECT id, conversation, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM room WHERE id = ? RETURNING id, conversation`,
		c.Messages, c.Shortened,
		c.Level, c.Reason, c.Summary, strings.Join(c.Details, "\n"), c.Before, c.After, millis(c.At), c.Integrity, c.Room).
		Scan(&c.ID, &c.Conversation)
}
