package matrix

import (
	"context"
	"database/sql"
	"fmt"
)

// Forget takes texts out of the copies of what was sent, in tx. What waits to be
// sent stays as it is.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, `UPDATE outbox SET text = replace(text, ?1, '[forgotten]') WHERE state IN ('sent', 'dead') AND instr(text, ?1) > 0`, t); err != nil {
			return fmt.Errorf("forget in what was sent: %w", err)
		}
	}
	return nil
}
