package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

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
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema from version %d to %d: %w", current, newest, err)
	}
	return nil
}
