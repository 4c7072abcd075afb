package store

import (
	"context"
	"database/sql"
)

// Querier is a database or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Row is one row of a result.
type Row interface{ Scan(dest ...any) error }

// Rows returns what scan makes of each row of a query.
func Rows[T any](ctx context.Context, db Querier, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// Column reads a row that has one column.
func Column[T any](r Row) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}

// InTx runs f in one transaction, which is rolled back if f fails.
func InTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
