package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The functions of this file add the beginning of the statement to an error, so callers need not say
// what they did.

// DBTX is implemented by *DB and *sql.Tx. A function that takes one works both inside and outside a
// transaction.
type DBTX interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Row is one row of a result. Both *sql.Row and *sql.Rows implement it.
type Row interface{ Scan(dest ...any) error }

// Each calls do with every row of a query, in order. It stops at its first error, and when ctx ends. It keeps one row
// at a time in memory, so it suits large tables; use List for others.
func Each(ctx context.Context, db DBTX, do func(Row) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return withQuery(err, query)
	}
	defer rows.Close()
	for ctx.Err() == nil && rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return withQuery(cmp.Or(ctx.Err(), rows.Err()), query)
}

// Exec runs a statement that returns no rows.
func Exec(ctx context.Context, db DBTX, query string, args ...any) error {
	_, err := db.ExecContext(ctx, query, args...)
	return withQuery(err, query)
}

// withQuery adds the beginning of a statement to its error; nil stays nil.
func withQuery(err error, query string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%.80s: %w", strings.Join(strings.Fields(query), " "), err)
}

// List returns the rows of a query, in order, each read by scan; nil = no rows.
func List[T any](ctx context.Context, db DBTX, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := Each(ctx, db, func(row Row) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Pairs returns the rows of a query of two columns as a map from the first to the second.
func Pairs[K comparable, V any](ctx context.Context, db DBTX, query string, args ...any) (map[K]V, error) {
	all := map[K]V{}
	return all, Each(ctx, db, func(row Row) error {
		var key K
		var value V
		err := row.Scan(&key, &value)
		all[key] = value
		return err
	}, query, args...)
}

// Column returns the values of a query of one column, in order; nil = no rows.
func Column[T any](ctx context.Context, db DBTX, query string, args ...any) ([]T, error) {
	return List(ctx, db, func(row Row) (value T, err error) {
		err = row.Scan(&value)
		return value, err
	}, query, args...)
}

// Value returns the value of a query of one row and one column; it is zero when there is no row.
func Value[T any](ctx context.Context, db DBTX, query string, args ...any) (v T, err error) {
	_, err = Found(db.QueryRowContext(ctx, query, args...).Scan(&v))
	return v, withQuery(err, query)
}

// Found reports whether a row was scanned, by the error of the scan; sql.ErrNoRows is not an error.
func Found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Wrap adds context to err; nil stays nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// JSON wraps a list for a column that holds it as JSON. It is for scanning and for writing. An
// empty list is "".
func JSON[T any](list *[]T) jsonColumn[T] { return jsonColumn[T]{list} }

type jsonColumn[T any] struct{ list *[]T }

// Value implements driver.Valuer.
func (c jsonColumn[T]) Value() (driver.Value, error) {
	if len(*c.list) == 0 {
		return "", nil
	}
	b, err := json.Marshal(*c.list)
	return string(b), err
}

// Scan implements sql.Scanner.
func (c jsonColumn[T]) Scan(from any) error {
	text, _ := from.(string)
	if *c.list = nil; text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), c.list)
}

// Map returns what of makes of each value.
func Map[V, R any](values []V, of func(V) R) []R {
	out := make([]R, len(values))
	for i, v := range values {
		out[i] = of(v)
	}
	return out
}

// Array encodes values for json_each, so that a list of any length is one argument.
func Array[T ~int64 | ~string](values []T) string {
	if len(values) == 0 {
		return "[]"
	}
	list, _ := json.Marshal(values) // numbers and strings can be written
	return string(list)
}
