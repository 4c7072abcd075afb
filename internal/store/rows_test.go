package store_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"reverie/internal/store"
)

var errTest = errors.New("a test")

func letters(t *testing.T) *sql.DB {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "bot.db"), migrations(`CREATE TABLE letter (n INTEGER NOT NULL UNIQUE, name TEXT);`))
	run(t, db, `INSERT INTO letter VALUES (1, 'a'), (2, 'b'), (3, 'c')`)
	return db
}

// TestInTxIsAllOrNothing: what do did stays if it returns nil, on a database and on a connection.
func TestInTxIsAllOrNothing(t *testing.T) {
	db := letters(t)
	insert := func(n int, then error) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO letter VALUES (?, 'new')`, n); err != nil {
				return err
			}
			return then
		}
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.InTx(t.Context(), db, insert(4, nil)), store.InTx(t.Context(), conn, insert(5, nil)), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if err := store.InTx(t.Context(), db, insert(6, errTest)); err != errTest { //nolint:errorlint // it is returned as it is
		t.Errorf("got %v, want the error of the function", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = store.InTx(t.Context(), db, func(tx *sql.Tx) error { return errors.Join(insert(7, nil)(tx), panics()) })
	}()
	all, err := store.Column[int](t.Context(), db, `SELECT n FROM letter ORDER BY n`)
	if err != nil || !slices.Equal(all, []int{1, 2, 3, 4, 5}) {
		t.Errorf("the table holds %v, %v", all, err)
	}
	if db.Close() != nil || store.InTx(t.Context(), db, insert(8, nil)) == nil {
		t.Error("a closed database begins a transaction")
	}
}

func panics() error { panic("a test") }

// TestRowsAreClosedWhateverHappens reads on the only connection there is: rows left open
// would keep the next query waiting.
func TestRowsAreClosedWhateverHappens(t *testing.T) {
	db := letters(t)
	db.SetMaxOpenConns(1)
	const query = `SELECT name FROM letter WHERE n >= ? ORDER BY n DESC`
	upper := func(row store.Row) (string, error) {
		var s string
		err := row.Scan(&s)
		return s + s, err
	}
	refuse := func(row store.Row) (string, error) { return "half", errTest }
	all, err := store.List(t.Context(), db, upper, query, 2)
	if err != nil || !slices.Equal(all, []string{"cc", "bb"}) {
		t.Errorf("List: %q, %v", all, err)
	}
	if all, err := store.List(t.Context(), db, refuse, query, 1); all != nil || !errors.Is(err, errTest) {
		t.Errorf("List whose scan fails: %q, %v", all, err)
	}
	if all, err := store.Column[string](t.Context(), db, query, 9); all != nil || err != nil {
		t.Errorf("Column of nothing: %q, %v", all, err)
	}
	if all, err := store.Column[int](t.Context(), db, query, 1); all != nil || err == nil {
		t.Errorf("Column of another type: %v, %v", all, err)
	}
	if _, err := store.Column[int](t.Context(), db, `SELECT abs(-9223372036854775807 - n) FROM letter WHERE n = 1`); err == nil {
		t.Error("a row that cannot be computed is no error")
	}
	calls := 0
	err = store.Each(t.Context(), db, func(store.Row) error { calls++; return errTest }, query, 1)
	if calls != 1 || !errors.Is(err, errTest) {
		t.Errorf("Each: %d calls, %v", calls, err)
	}
	if _, err := store.Column[int](t.Context(), db, `SELECT nothing`); err == nil {
		t.Error("a query with a mistake is no error")
	}
}
