package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/pressly/goose/v3"
)

// squashed is the newest schema version that the oldest migrations make together, one file
// for each owner of tables. Their numbers are among those that every database of that version
// has applied, so none of them runs there again. An older database lacks steps between them.
const squashed = 69

// ErrOlderSchema is in the error of Open when the database is too old to be upgraded.
var ErrOlderSchema = errors.New("the database was written by a development version that is too old to be upgraded")

// migrate brings db to the newest of migrations. An up-to-date database costs one
// small query: goose itself would parse every file first.
func migrate(ctx context.Context, db *sql.DB, migrations fs.FS) error {
	want, err := versions(migrations)
	if err != nil {
		return err
	}
	have, err := applied(ctx, db)
	if err != nil {
		return err
	}
	newest, current := want[len(want)-1], int64(0)
	if len(have) > 0 {
		current = have[len(have)-1]
	}
	switch {
	case current > newest:
		return fmt.Errorf("%w (its schema is version %d, this one knows up to %d); "+
			"install that release again, or restore a backup from before the upgrade",
			ErrNewerSchema, current, newest)
	case current > 0 && have[0] < want[0] && !slices.Contains(have, squashed):
		return fmt.Errorf("%w (its schema is version %d, and upgrades begin at %d); nothing was changed. "+
			"Build the version of 23 November 2026 (git checkout e341543), start it once with this database, and then this one again",
			ErrOlderSchema, current, squashed)
	case !slices.ContainsFunc(want, func(v int64) bool { return !slices.Contains(have, v) }):
		return nil
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema from version %d to %d: %w", current, newest, err)
	}
	return nil
}

// versions lists the versions of migrations, ascending.
func versions(migrations fs.FS) ([]int64, error) {
	names, err := fs.Glob(migrations, "*.sql") // sorted by name: four digits first
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	out := make([]int64, len(names))
	for i, name := range names {
		v, err := goose.NumericComponent(path.Base(name))
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		out[i] = v
	}
	return out, nil
}

// applied reads the versions in goose's own table, ascending. A database with tables but
// without that one belongs to somebody else, and we do not add ours to it.
func applied(ctx context.Context, db *sql.DB) ([]int64, error) {
	var tables, ours int
	err := db.QueryRowContext(ctx,
		`SELECT count(*), count(CASE WHEN name = 'goose_db_version' THEN 1 END) FROM sqlite_master WHERE type = 'table'`).
		Scan(&tables, &ours)
	if err != nil {
		return nil, err
	}
	if ours == 0 {
		if tables > 0 {
			return nil, fmt.Errorf("this database belongs to another program (it has %d tables and none of ours); "+
				"nothing was changed, choose another path", tables)
		}
		return nil, nil
	}
	return Column[int64](ctx, db, `SELECT DISTINCT version_id FROM goose_db_version
		WHERE is_applied AND version_id > 0 ORDER BY version_id`)
}
