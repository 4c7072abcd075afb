package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	reverie "reverie"
	"reverie/internal/store"
)

func migrations(sqls ...string) fs.FS {
	m := fstest.MapFS{}
	for i, s := range sqls {
		name := string([]byte{'0', '0', '0', byte('1' + i)}) + "_step.sql"
		m[name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + s + "\n")}
	}
	return m
}

func open(t *testing.T, path string, m fs.FS) *sql.DB {
	t.Helper()
	db, err := store.Open(context.Background(), path, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func value(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var s string
	if err := db.QueryRow(query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

// TestOpenHoldsItsPromises checks on every connection of the pool what an
// answer given exactly once relies on.
func TestOpenHoldsItsPromises(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "bot.db"), reverie.Migrations)
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "60000", "secure_delete": "1"}
	for range 3 {
		conn, err := db.Conn(t.Context()) // held, so that each is another one
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for name, w := range want {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != w {
				t.Errorf("PRAGMA %s = %s, want %s", name, got, w)
			}
		}
	}
}

func TestOpenKeepsFilesPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "bot.db")
	db := open(t, path, migrations("CREATE TABLE x (a TEXT);"))
	run(t, db, "INSERT INTO x VALUES ('secret')")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(name), info.Mode().Perm())
		}
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", info.Mode().Perm())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path, migrations("CREATE TABLE x (a TEXT);"))
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("a database that was readable by all stays so: %v", info.Mode().Perm())
	}
}

func TestOpenOddPaths(t *testing.T) {
	for _, name := range []string{"with space", "a?b=c&d", "100%", "#1", "ключ", "a;b'c\"d"} {
		dir := filepath.Join(t.TempDir(), name)
		db := open(t, filepath.Join(dir, "bot.db"), migrations("CREATE TABLE x (a TEXT);"))
		run(t, db, "INSERT INTO x VALUES ('here')")
		if _, err := os.Stat(filepath.Join(dir, "bot.db-wal")); err != nil {
			t.Errorf("%q: the database went elsewhere: %v", name, err)
		}
	}
}

func TestOpenUpgradesAndKeepsRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	one := "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
	old := open(t, path, migrations(one))
	run(t, old, "INSERT INTO note (text) VALUES ('Jana'), ('茶'), ('')")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	two := "ALTER TABLE note ADD COLUMN room TEXT NOT NULL DEFAULT 'unknown';"
	three := "CREATE INDEX note_by_room ON note (room);"
	for range 2 { // the second time nothing is left to do
		db := open(t, path, migrations(one, two, three))
		if got := value(t, db, "SELECT group_concat(text || '@' || room, '|') FROM note"); got != "Jana@unknown|茶@unknown|@unknown" {
			t.Errorf("rows after the upgrade: %q", got)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenFailedMigrationChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	one := "CREATE TABLE x (a TEXT);"
	run(t, open(t, path, migrations(one)), "INSERT INTO x VALUES ('kept')")
	_, err := store.Open(t.Context(), path, migrations(one, "CREATE TABLE y (a TEXT); INSERT INTO nowhere VALUES (1);"))
	if err == nil || !strings.Contains(err.Error(), "from version 1 to 2") {
		t.Fatalf("error %v", err)
	}
	db := open(t, path, migrations(one))
	if got := value(t, db, "SELECT a || (SELECT count(*) FROM sqlite_master WHERE name = 'y') FROM x"); got != "kept0" {
		t.Errorf("got %q", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	one := migrations("CREATE TABLE x (a TEXT);")
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		is      error
		want    string
	}{
		"newer schema": {func(t *testing.T, path string) {
			_ = open(t, path, migrations("CREATE TABLE x (a TEXT);", "CREATE TABLE y (a TEXT);")).Close()
		}, store.ErrNewerSchema, "version 2, this one knows up to 1"},
		"not a database": {func(t *testing.T, path string) {
			write(t, path, strings.Repeat("dear diary, ", 500))
		}, nil, "not a SQLite database"},
		"damaged": {func(t *testing.T, path string) {
			_ = open(t, path, migrations("CREATE TABLE x (a TEXT);")).Close()
			b := read(t, path)
			for i := 100; i < len(b); i++ {
				b[i] = 0xA5
			}
			write(t, path, string(b))
		}, nil, "damaged"},
		"somebody else's": {func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			run(t, db, "CREATE TABLE theirs (a TEXT)")
			_ = db.Close()
		}, nil, "another program"},
		"log without its database": {func(t *testing.T, path string) {
			write(t, path+"-wal", "promises")
			write(t, path, "")
		}, nil, "-wal still holds"},
		"folder": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, nil, "not a file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bot.db")
			tt.prepare(t, path)
			before, _ := os.ReadFile(path)
			wal, _ := os.ReadFile(path + "-wal")
			_, err := store.Open(t.Context(), path, one)
			if err == nil {
				t.Fatal("opened")
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error is not %v: %v", tt.is, err)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %q lacks %q or the path", err, tt.want)
			}
			after, _ := os.ReadFile(path)
			walAfter, _ := os.ReadFile(path + "-wal")
			if !bytes.Equal(before, after) || !bytes.Equal(wal, walAfter) {
				t.Error("the refused file was changed")
			}
		})
	}
}

func TestOpenOnAFullDisk(t *testing.T) {
	dir := smallDisk(t)
	path := filepath.Join(dir, "bot.db")
	one, two := "CREATE TABLE x (a TEXT);", "CREATE TABLE y AS SELECT hex(zeroblob(100000)) AS a;"
	db := open(t, path, migrations(one))
	run(t, db, "INSERT INTO x VALUES ('kept')")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 4<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	_, err := store.Open(t.Context(), path, migrations(one, two))
	if err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	if got := value(t, open(t, path, migrations(one, two)), "SELECT a FROM x"); got != "kept" {
		t.Errorf("got %q", got)
	}
}
