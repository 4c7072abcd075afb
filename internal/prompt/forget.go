package prompt

import (
	"context"
	"database/sql"
	"fmt"
)

// Forget throws away, in tx, the stored prompts that quote one of texts. The
// next request of such a room begins a new epoch.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM prompt_epoch WHERE instr(prefix, ?) > 0`, oneLine(t, longest)); err != nil {
			return fmt.Errorf("forget in prompts: %w", err)
		}
	}
	return nil
}
