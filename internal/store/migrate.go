package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

// migrate updates db to the newest of migrations and enables its write-ahead log. It refuses the
// database of another program or of a newer release before it writes anything.
func migrate(ctx context.Context, db *sql.DB, migrations fs.FS) error {
	foreign, err := Value[int](ctx, db, `SELECT count(*) FROM sqlite_master WHERE type = 'table'
		AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'goose_db_version')`)
	if err != nil {
		return err
	}
	if foreign > 0 {
		return fmt.Errorf("this database belongs to another program (it has %d tables and none of ours); "+
			"nothing was changed, choose another path", foreign)
	}
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode(WAL)`); err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, newest, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > newest {
		return fmt.Errorf("the database was written by a newer release (its schema is version %d, this one knows up to %d); "+
			"install that release again, or restore a backup from before the upgrade", current, newest)
	}
	if current > 0 && current < firstRelease {
		if err := upgrade(ctx, db, migrations, current); err != nil {
			return err
		}
	}
	_, err = p.Up(ctx)
	return Wrap(err, "bring the schema from version %d to %d", current, newest)
}

// SchemaVersion returns the version of the schema of db.
func SchemaVersion(ctx context.Context, db DBTX) (int, error) {
	return Value[int](ctx, db, `SELECT max(version_id) FROM goose_db_version`)
}

// CheckIntegrity reads all of db and returns an error if it is damaged.
func CheckIntegrity(ctx context.Context, db DBTX) error {
	found, err := Column[string](ctx, db, `PRAGMA integrity_check(3)`)
	if err == nil && !slices.Equal(found, []string{"ok"}) {
		err = fmt.Errorf("the database is damaged: %s", strings.Join(found, "; "))
	}
	return err
}

// Schema versions: the oldest that is upgraded, and the first of release 0.1.0.
const (
	oldest       = 69
	firstRelease = 101
)

// upgrade brings the database of a development version to the schema of the first release. The
// steps are the migrations of the folder upgrade.
func upgrade(ctx context.Context, db *sql.DB, migrations fs.FS, current int64) error {
	steps, err := fs.Sub(migrations, "upgrade")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := fs.Stat(steps, "."); errors.Is(err, fs.ErrNotExist) {
		return nil // the migrations of a test
	}
	if current < oldest {
		return fmt.Errorf("the database was written by an early development version (its schema is version %d); "+
			"start a version of 23 November 2026 or later once, then this one", current)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, steps, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	_, err = p.Up(ctx)
	return Wrap(err, "upgrade the schema of version %d", current)
}
