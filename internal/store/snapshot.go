package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Snapshot writes a consistent copy of db to path (0600, folders 0700), durably. An existing file
// is replaced. Others can read and write meanwhile. After an error there is no copy.
func Snapshot(ctx context.Context, db *sql.DB, path string) (err error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = makeDir(filepath.Dir(abs))
	}
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	part := abs + ".part"
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the database: %w", err)
			_ = os.Remove(part) // it may not exist
		}
	}()
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite accepts an empty file and keeps its mode
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(part, abs); err != nil {
		return err
	}
	return syncDir(filepath.Dir(abs))
}
