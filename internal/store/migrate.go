package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"

	"github.com/pressly/goose/v3"
)

// migrate brings db to the newest of migrations. A database that is there
// already costs one small query: goose itself would parse every file first.
func migrate(ctx context.Context, db *sql.DB, migrations fs.FS) error {
	want, err := versions(migrations)
	if err != nil {
		return err
	}
	if len(want) == 0 {
		return fmt.Errorf("no migrations to apply: this binary was built wrongly")
	}
	have, err := applied(ctx, db)
	if err != nil {
		return err
	}
	newest := want[len(want)-1]
	if have.newest > newest {
		return fmt.Errorf("%w (its schema is version %d, this one knows up to %d); install that release again, or restore a backup from before the upgrade",
			ErrNewerSchema, have.newest, newest)
	}
	if have.newest == newest && have.count == len(want) {
		return nil
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema from version %d to %d: %w", have.newest, newest, err)
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
		if i > 0 && v <= out[i-1] {
			return nil, fmt.Errorf("migration %s: version %d is there already", name, v)
		}
		out[i] = v
	}
	return out, nil
}

// schema says what a database holds.
type schema struct {
	newest int64
	count  int
}

// applied reads goose's own table. A database with tables but without that one
// belongs to somebody else, and we do not add ours to it.
func applied(ctx context.Context, db *sql.DB) (schema, error) {
	var tables, ours int
	err := db.QueryRowContext(ctx,
		`SELECT count(*), count(CASE WHEN name = 'goose_db_version' THEN 1 END) FROM sqlite_master WHERE type = 'table'`).
		Scan(&tables, &ours)
	if err != nil {
		return schema{}, err
	}
	if ours == 0 {
		if tables > 0 {
			return schema{}, fmt.Errorf("this database belongs to another program (it has %d tables and none of ours); nothing was changed, choose another path", tables)
		}
		return schema{}, nil
	}
	var s schema
	err = db.QueryRowContext(ctx,
		`SELECT coalesce(max(version_id), 0), count(DISTINCT version_id) FROM goose_db_version WHERE is_applied AND version_id > 0`).
		Scan(&s.newest, &s.count)
	return s, err
}
