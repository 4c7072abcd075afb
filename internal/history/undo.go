package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/store"
)

// Reasons why no compaction is taken back.
var (
	ErrNotCompacted = errors.New("nothing of this conversation was compacted")
	ErrUndone       = errors.New("the newest compaction was taken back already")
)

// snapshot keeps in tx what the messages shorter are sent as before c changes them.
// The rest of a compaction is marks, which can be removed.
func snapshot(ctx context.Context, tx *sql.Tx, c *Compaction, shorter []Message) error {
	keep := `INSERT INTO compaction_before (compaction, message, short) SELECT ?, id, short FROM message WHERE ` + loaded + ` AND id = ?`
	return each(ctx, tx, keep, shorter, func(m *Message) []any { return []any{c.ID, c.Room, c.Room, m.ID} })
}

// Uncompact takes the newest compaction of the current conversation of room back, and
// returns it: its messages are loaded as they were before, and the summary before it
// counts again. What was said since stays. It fails with ErrNotCompacted or ErrUndone; all
// of it happens, or nothing does.
func (s *Store) Uncompact(ctx context.Context, room Talk, now time.Time) (Compaction, error) {
	c := Compaction{Room: room}
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error { return s.uncompact(ctx, tx, &c, now) })
	switch {
	case errors.Is(err, ErrNotCompacted), errors.Is(err, ErrUndone):
		return Compaction{}, err
	case err != nil:
		return Compaction{}, fmt.Errorf("take a compaction back: %w", err)
	}
	s.reached("taken back")
	return c, nil
}

func (s *Store) uncompact(ctx context.Context, tx *sql.Tx, c *Compaction, now time.Time) error {
	var undone int64
	err := tx.QueryRowContext(ctx, `SELECT id, conversation, messages, shortened, undone FROM compaction
		WHERE room = ? AND conversation = (SELECT conversation FROM room WHERE id = ?) ORDER BY id DESC LIMIT 1`, c.Room, c.Room).
		Scan(&c.ID, &c.Conversation, &c.Messages, &c.Shortened, &undone)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotCompacted
	case err != nil:
		return err
	case c.Messages+c.Shortened == 0: // it only carries a summary into a new conversation
		return ErrNotCompacted
	case undone != 0:
		return ErrUndone
	}
	for _, step := range []struct {
		name, query string
		args        []any
	}{
		{"undone", `UPDATE compaction SET undone = ? WHERE id = ?`, []any{max(1, millis(now)), c.ID}},
		{"unmarked", `UPDATE message SET retired = 0, compaction = 0 WHERE compaction = ?`, []any{c.ID}},
		{"quoted", `UPDATE message SET unquoted = 0 WHERE unquoted = ?`, []any{c.ID}},
		{"restored", `UPDATE message SET short = b.short FROM compaction_before b WHERE b.compaction = ? AND b.message = message.id`, []any{c.ID}},
	} {
		if _, err := tx.ExecContext(ctx, step.query, step.args...); err != nil {
			return err
		}
		s.reached(step.name)
	}
	return nil
}
