package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Left tells whether we have left a room, or were put out of it, and are not invited
// into it again. A room that is not known is none that was left.
func (c *Client) Left(ctx context.Context, room string) (bool, error) {
	var left bool
	err := c.q.db.QueryRowContext(ctx, `SELECT membership IN ('left', 'refused') FROM matrix_room WHERE id = ?`, room).Scan(&left)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("matrix: look up a room: %w", err)
	}
	return left, nil
}
