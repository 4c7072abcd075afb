package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"reverie/internal/test/expect"

	"modernc.org/sqlite"
)

// kept returns how many statements a connection keeps.
func kept(t *testing.T, c *sql.Conn) (n int) {
	t.Helper()
	expect.OK(t, c.Raw(func(driver any) error { n = len(driver.(*connection).idle); return nil }))
	return n
}

// TestStatements: a statement is prepared once, also if it fails, runs within itself, or the table changes.
func TestStatements(t *testing.T) {
	ctx := t.Context()
	db := sql.OpenDB(connector{&sqlite.Driver{}, dsn(filepath.Join(t.TempDir(), "a.db"), pragmas...)})
	defer db.Close()
	c := expect.Must(db.Conn(ctx))(t)
	defer c.Close()
	expect.OK(t, Exec(ctx, c, `CREATE TABLE a (n INTEGER PRIMARY KEY)`))
	before := kept(t, c)
	insert := func(n int) error { return Exec(ctx, c, `INSERT INTO a (n) VALUES (?)`, n) }
	for n := range 3 {
		expect.OK(t, insert(n))
	}
	if err := insert(1); err == nil {
		t.Error("the same key twice is no error")
	}
	expect.OK(t, insert(3))
	expect.Equal(t, kept(t, c), before+1, "statements after five inserts")

	const all = `SELECT n FROM a ORDER BY n`
	var seen []string
	expect.OK(t, Each(ctx, c, func(row Row) error {
		var n int
		expect.OK(t, row.Scan(&n))
		seen = append(seen, fmt.Sprint(n, expect.Must(Column[int](ctx, c, all))(t)))
		return nil
	}, all))
	expect.EqualSlice(t, seen, []string{"0 [0 1 2 3]", "1 [0 1 2 3]", "2 [0 1 2 3]", "3 [0 1 2 3]"}, "each with all")
	expect.Equal(t, kept(t, c), before+2, "statements after a query within itself")

	expect.OK(t, Exec(ctx, c, `DROP TABLE a`))
	expect.OK(t, Exec(ctx, c, `CREATE TABLE a (n INTEGER PRIMARY KEY, more TEXT)`))
	expect.OK(t, insert(9))
	expect.EqualSlice(t, expect.Must(Column[int](ctx, c, all))(t), []int{9}, "in the new table")

	for n := range 3 * maxStatements {
		expect.Must(Column[int](ctx, c, fmt.Sprintf(`SELECT %d`, n)))(t)
	}
	expect.Equal(t, kept(t, c), maxStatements, "statements after many")
}
