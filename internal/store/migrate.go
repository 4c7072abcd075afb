package store

import (
	"context"
	"database/sql"
	"errors"
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
	if err := upgradeUnreleased(ctx, db, migrations, p.ListSources(), current); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema from version %d to %d: %w", current, newest, err)
	}
	return nil
}

// unreleased is the schema version of the last development version before the first release.
const unreleased = 93

// upgradeUnreleased brings a database of that version to a new database's schema. That is the
// schema that files make. It uses upgrade/93.sql. It refuses older ones: they need the development
// version first.
func upgradeUnreleased(ctx context.Context, db *sql.DB, migrations fs.FS, files []*goose.Source, current int64) error {
	script, err := fs.ReadFile(migrations, "upgrade/93.sql")
	if errors.Is(err, fs.ErrNotExist) || current == 0 || current > unreleased {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if current < unreleased {
		return fmt.Errorf("the database was written by an early development version (its schema is version %d); "+
			"start the last version before 0.1.0 once, then this one", current)
	}
	err = InTx(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, string(script)); err != nil {
			return err
		}
		for _, file := range files {
			if _, err := tx.ExecContext(ctx, `INSERT INTO goose_db_version (version_id, is_applied)
				VALUES (?, 1)`, file.Version); err != nil {
				return err
			}
		}
		return nil
	})
	return Wrap(err, "upgrade the schema of version %d", current)
}
