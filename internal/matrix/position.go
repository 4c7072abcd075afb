package matrix

import (
	"context"
	"database/sql"
	"time"

	"reverie/internal/matrix/room"
	"reverie/internal/store"
)

// position is the stored sync token and its time.
type position struct {
	token string
	at    time.Time // by our clock; zero = never
}

// storedSyncPosition returns the stored sync position of this device.
func (c *Client) storedSyncPosition(ctx context.Context) (p position, err error) {
	var at int64
	err = c.cfg.DB.QueryRowContext(ctx, `SELECT next_batch, at FROM matrix_sync WHERE user = ? AND device = ?`,
		c.cli.UserID.String(), c.cli.DeviceID.String()).Scan(&p.token, &at)
	if found, err := store.Found(err); !found {
		return position{}, store.Wrap(err, "matrix: read sync token")
	}
	p.at = time.UnixMilli(at)
	return p, nil
}

// commitBatchAndSyncToken stores the batch of a sync and the next sync token in one transaction.
func (c *Client) commitBatchAndSyncToken(ctx context.Context, next string, b *batch) error {
	return c.inbox.Commit(ctx, &b.Batch, func(tx *sql.Tx) error {
		if err := room.StoreLastEvents(ctx, tx, b.last); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `INSERT INTO matrix_sync (user, device, next_batch, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user, device) DO UPDATE SET next_batch = excluded.next_batch, at = excluded.at, failures = 0, problem = ''`,
			c.cli.UserID.String(), c.cli.DeviceID.String(), next, c.cfg.now().UnixMilli())
	})
}

// storeSyncFailure records a failed sync for `bot doctor`. Before the first sync there is no row to
// record it in.
func (c *Client) storeSyncFailure(ctx context.Context, failures int64, why error) error {
	return store.Exec(ctx, c.cfg.DB, `UPDATE matrix_sync SET failures = ?, problem = ? WHERE user = ? AND device = ?`,
		failures, why.Error(), c.cli.UserID.String(), c.cli.DeviceID.String())
}
