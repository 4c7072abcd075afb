package store_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"reverie/internal/store"
)

// TestRows reads what a transaction has written, and nothing of one that failed.
func TestRows(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "bot.db"), migrations("CREATE TABLE n (v INTEGER NOT NULL);"))
	add := func(failed error, values ...int) error {
		return store.InTx(t.Context(), db, func(tx *sql.Tx) error {
			for _, v := range values {
				if _, err := tx.ExecContext(t.Context(), `INSERT INTO n (v) VALUES (?)`, v); err != nil {
					return err
				}
			}
			return failed
		})
	}
	broken := errors.New("broken")
	if err := add(nil, 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := add(broken, 3); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	got, err := store.Rows(t.Context(), db, store.Column[int], `SELECT v FROM n WHERE v < ? ORDER BY v`, 10)
	if err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := store.Rows(t.Context(), db, func(store.Row) (int, error) { return 0, broken }, `SELECT v FROM n`); !errors.Is(err, broken) {
		t.Errorf("a row that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Rows(ctx, db, store.Column[int], `SELECT v FROM n`); err == nil {
		t.Error("read after the end")
	}
}
