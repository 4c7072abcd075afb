package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
