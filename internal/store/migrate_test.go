package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	reverie "reverie"
	"reverie/internal/store"
)

// version69 makes the database of testdata/schema69.sql and returns its path.
func version69(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	run(t, db, string(read(t, filepath.Join("testdata", "schema69.sql"))))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// rows returns the rows of every table but those of goose and SQLite, by table.
func rows(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	tables, err := store.Column[string](t.Context(), db,
		`SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'goose_db_version' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, table := range tables {
		columns, err := store.Column[string](t.Context(), db, `SELECT 'quote("' || name || '")' FROM pragma_table_xinfo(?)`, table)
		if err != nil {
			t.Fatal(err)
		}
		all[table], err = store.Column[string](t.Context(), db, fmt.Sprintf(`SELECT %s AS row FROM %s ORDER BY row`, strings.Join(columns, " || ', ' || "), table))
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	space   = regexp.MustCompile(`\s+`)
	joint   = regexp.MustCompile(` ?([(),;]) ?`)
)

// statements returns what made each table, index and trigger of db, without comments and layout.
func statements(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := store.Each(t.Context(), db, func(row store.Row) error {
		var name, query string
		err := row.Scan(&name, &query)
		query = space.ReplaceAllString(comment.ReplaceAllString(query, ""), " ")
		all[name] = strings.Trim(joint.ReplaceAllString(strings.ReplaceAll(query, `"inbox"`, "inbox"), "$1"), " ")
		return err
	}, `SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_master`)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// squashed holds the migrations up to version 69.
func squashed(t *testing.T) fs.FS {
	t.Helper()
	names, err := fs.Glob(reverie.Migrations, "00[0-6]?_*.sql")
	if err != nil {
		t.Fatal(err)
	}
	m := fstest.MapFS{}
	for _, name := range names {
		b, err := fs.ReadFile(reverie.Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = &fstest.MapFile{Data: b}
	}
	return m
}

// TestSquashedMigrations: a new database has the schema that the migrations up to 69 made one
// by one, and their rows. A database that those made is not touched.
func TestSquashedMigrations(t *testing.T) {
	path := version69(t)
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	wantRows, wantSchema := rows(t, raw), statements(t, raw)
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	for table, kept := range wantRows {
		if len(kept) == 0 {
			t.Errorf("no rows in %s to be kept", table)
		}
	}
	was := read(t, path)
	opened := open(t, path, squashed(t))
	if got := rows(t, opened); !maps.EqualFunc(wantRows, got, slices.Equal) {
		t.Errorf("rows changed: %v", got)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if string(read(t, path)) != string(was) {
		t.Error("a database of version 69 was changed")
	}

	fresh := open(t, filepath.Join(t.TempDir(), "bot.db"), squashed(t))
	same(t, statements(t, fresh), wantSchema)
	for query, want := range map[string]string{
		`SELECT n FROM task_change`:                                     "0",
		`SELECT n FROM memory_change`:                                   "0",
		`SELECT length(salt) FROM memory_salt`:                          "32",
		`SELECT group_concat(k || '=' || v, ' ') FROM index_fts_config`: "hashsize=16777216 secure-delete=0 version=4",
	} {
		if got := value(t, fresh, query); got != want {
			t.Errorf("%s in a new database: %s, want %s", query, got, want)
		}
	}
}

// TestUpgradeEndsAsANewDatabase: later migrations make of version 69 what they make of a new database.
func TestUpgradeEndsAsANewDatabase(t *testing.T) {
	upgraded := open(t, version69(t), reverie.Migrations)
	fresh := open(t, filepath.Join(t.TempDir(), "bot.db"), reverie.Migrations)
	same(t, statements(t, upgraded), statements(t, fresh))
	if got := value(t, upgraded, `SELECT group_concat(text, '|') FROM message WHERE role <> 'tool'`); got != "Where is the key?|Under the mat. 茶" {
		t.Errorf("messages after the upgrade: %s", got)
	}
}

// same reports what got and want say differently.
func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is\n  %s\nwant\n  %s", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// TestOlderDatabaseIsRefused: a database from before version 69 is refused with a remedy, and stays as it is.
func TestOlderDatabaseIsRefused(t *testing.T) {
	path := version69(t)
	for _, version := range []int{68, 67, 61, 60, 6, 1} {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		run(t, db, `DELETE FROM goose_db_version WHERE version_id > ?`, version)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		was := read(t, path)
		_, err = store.Open(t.Context(), path, reverie.Migrations)
		if !errors.Is(err, store.ErrOlderSchema) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "git checkout") {
			t.Fatalf("version %d: %v", version, err)
		}
		if string(read(t, path)) != string(was) {
			t.Errorf("version %d: the refused database was changed", version)
		}
		if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
			t.Errorf("version %d: %d bytes were written", version, info.Size())
		}
	}
}
