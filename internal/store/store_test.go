package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

func migrations(sqls ...string) fs.FS {
	m := fstest.MapFS{}
	for i, s := range sqls {
		name := string([]byte{'0', '0', '0', byte('1' + i)}) + "_step.sql"
		m[name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + s + "\n")}
	}
	return m
}

func open(t *testing.T, path string, m fs.FS) *store.DB {
	t.Helper()
	db := expect.Must(store.Open(context.Background(), path, m))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db store.DBTX, query string, args ...any) {
	t.Helper()
	expect.Must(db.ExecContext(t.Context(), query, args...))(t)
}

func value(t *testing.T, db store.DBTX, query string) string {
	t.Helper()
	var s string
	expect.OK(t, db.QueryRowContext(t.Context(), query).Scan(&s))
	return s
}

// TestOpenPragmas checks what an answer given exactly once relies on, where it writes and where it reads.
func TestOpenPragmas(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "bot.db"), reverie.Migrations)
	for name, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "60000", "secure_delete": "1"} {
		expect.Equal(t, value(t, db.DB, "PRAGMA "+name), want, "where it writes, PRAGMA %s", name)
		expect.Equal(t, value(t, db, "PRAGMA "+name), want, "where it reads, PRAGMA %s", name)
	}
}

func TestOpenKeepsFilesPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "bot.db")
	db := open(t, path, migrations("CREATE TABLE x (a TEXT);"))
	run(t, db, "INSERT INTO x VALUES ('secret')")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info := expect.Must(os.Stat(name))(t)
		expect.Equal(t, info.Mode().Perm(), 0o600, "%s has mode", filepath.Base(name))
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", info.Mode().Perm())
	}
	expect.OK(t, db.Close())
	expect.OK(t, os.Chmod(path, 0o644))
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
	expect.OK(t, old.Close())
	two := "ALTER TABLE note ADD COLUMN room TEXT NOT NULL DEFAULT 'unknown';"
	three := "CREATE INDEX note_by_room ON note (room);"
	for range 2 { // the second time nothing is left to do
		db := open(t, path, migrations(one, two, three))
		expect.Equal(t, value(t, db, "SELECT group_concat(text || '@' || room, '|') FROM note"), "Jana@unknown|茶@unknown|@unknown", "rows after the upgrade")
		expect.OK(t, db.Close())
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
	expect.Equal(t, value(t, db, "SELECT a || (SELECT count(*) FROM sqlite_master WHERE name = 'y') FROM x"), "kept0")
}

func TestOpenRefuses(t *testing.T) {
	one := migrations("CREATE TABLE x (a TEXT);")
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		want    string
	}{
		"newer schema": {func(t *testing.T, path string) {
			_ = open(t, path, migrations("CREATE TABLE x (a TEXT);", "CREATE TABLE y (a TEXT);")).Close()
		}, "version 2, this one knows up to 1"},
		"not a database": {func(t *testing.T, path string) { write(t, path, strings.Repeat("dear diary, ", 500)) }, "not a SQLite database"},
		"damaged": {func(t *testing.T, path string) {
			_ = open(t, path, migrations("CREATE TABLE x (a TEXT);")).Close()
			b := read(t, path)
			for i := 100; i < len(b); i++ {
				b[i] = 0xA5
			}
			write(t, path, string(b))
		}, "damaged"},
		"somebody else's": {func(t *testing.T, path string) {
			db := expect.Must(sql.Open("sqlite", path))(t)
			run(t, db, "CREATE TABLE theirs (a TEXT)")
			_ = db.Close()
		}, "another program"},
		"log without its database": {func(t *testing.T, path string) {
			write(t, path+"-wal", "promises")
			write(t, path, "")
		}, "-wal still holds"},
		"folder": {func(t *testing.T, path string) {
			expect.OK(t, os.Mkdir(path, 0o700))
		}, "not a file"},
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
	expect.OK(t, db.Close())
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 4<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	_, err := store.Open(t.Context(), path, migrations(one, two))
	if err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("error %v", err)
	}
	expect.OK(t, os.Remove(fill))
	expect.Equal(t, value(t, open(t, path, migrations(one, two)), "SELECT a FROM x"), "kept")
}

// developmentDatabase makes the database of a file in testdata and returns its path.
func developmentDatabase(t *testing.T, file string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.db")
	db := expect.Must(sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)"))(t)
	run(t, db, string(read(t, filepath.Join("testdata", file))))
	expect.OK(t, db.Close())
	return path
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	space   = regexp.MustCompile(`\s+`)
	renamed = regexp.MustCompile(`"(\w+)"`)
	joint   = regexp.MustCompile(` ?([(),;]) ?`)
)

// statements returns what made each table, index and trigger of db, without comments and layout.
func statements(t *testing.T, db *store.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := store.Each(t.Context(), db, func(row store.Row) error {
		var name, query string
		err := row.Scan(&name, &query)
		query = space.ReplaceAllString(comment.ReplaceAllString(query, ""), " ")
		all[name] = strings.Trim(joint.ReplaceAllString(renamed.ReplaceAllString(query, "$1"), "$1"), " ")
		return err
	}, `SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_master`)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUpgradeEndsAsANewDatabase: databases of versions 69 and 93 become what the migrations make,
// with their rows, and are upgraded once.
func TestUpgradeEndsAsANewDatabase(t *testing.T) {
	fresh := open(t, filepath.Join(t.TempDir(), "bot.db"), reverie.Migrations)
	for _, file := range []string{"schema69.sql", "schema93.sql"} {
		path := developmentDatabase(t, file)
		expect.OK(t, open(t, path, reverie.Migrations).Close())
		upgraded := open(t, path, reverie.Migrations)
		same(t, statements(t, upgraded), statements(t, fresh))
		for query, want := range map[string]string{
			`SELECT group_concat(text, '|') FROM message WHERE role <> 'tool'`: "Where is the key?|Under the mat. 茶",
			`SELECT max(version_id) FROM goose_db_version`:                     value(t, fresh, `SELECT max(version_id) FROM goose_db_version`),
			`SELECT concat_ws(' ', (SELECT count(*) FROM memory), (SELECT count(*) FROM embedding), (SELECT count(*) FROM past_message),
				(SELECT count(*) FROM group_message), (SELECT count(*) FROM pending_redaction), (SELECT count(*) FROM dream_change))`: "2 1 1 1 1 1",
		} {
			expect.Equal(t, value(t, upgraded, query), want, "%s: %s", file, query)
		}
		if file == "schema93.sql" {
			expect.Equal(t, value(t, upgraded, `SELECT change || target FROM inbox WHERE id = '$redaction'`), "redacted$question")
		}
	}
}

// TestEarlierDevelopmentVersion: a database older than version 69 is refused with the way out, and stays as it is.
func TestEarlierDevelopmentVersion(t *testing.T) {
	path := developmentDatabase(t, "schema69.sql")
	db := expect.Must(sql.Open("sqlite", path))(t)
	run(t, db, `DELETE FROM goose_db_version WHERE version_id = 69`)
	expect.OK(t, db.Close())
	before := read(t, path)
	if _, err := store.Open(t.Context(), path, reverie.Migrations); err == nil || !strings.Contains(err.Error(), "23 November 2026 or later once") {
		t.Errorf("opened with %v", err)
	}
	expect.Equal(t, bytes.Equal(read(t, path), before), true, "the file is unchanged")
}

// TestUpgradeOfTheOutbox: what ids said of the rows of an outbox stands in columns; what waits there still waits.
func TestUpgradeOfTheOutbox(t *testing.T) {
	path := developmentDatabase(t, "schema69.sql")
	old := expect.Must(sql.Open("sqlite", path))(t)
	run(t, old, `INSERT INTO outbox (id, room, state, generation, poll, created_at) VALUES
		('re:$a-2', '!r', 'sent', 0, '', 0), ('re:$a', '!r', 'pending', 2, '', 0), ('re:$a+4000-2', '!r', 'sent', 0, '', 0),
		('re:$a+whole-0123456789ab', '!r', 'pending', 1, '', 0), ('re:$a+file-call_1', '!r', 'pending', 0, '', 0),
		('re:$b-2', '!r', 'sent', 0, '', 0), ('re:$b-cd', '!r', 'sent', 0, '', 0), ('keys-!r-@a+b:x', '!r', 'sent', 0, '', 0), ('re:$a-3', '!r', 'sent', 0, '{}', 0)`)
	expect.OK(t, old.Close())
	db := open(t, path, reverie.Migrations)
	got := value(t, db, `SELECT group_concat(concat_ws(' ', id, message, part, state, txn), '|' ORDER BY id) FROM outbox WHERE room = '!r'`)
	expect.Equal(t, got, "keys-!r-@a+b:x   sent keys-!r-@a+b:x|re:$a   pending re:$a~2|re:$a+4000-2 re:$a text sent re:$a+4000-2|"+
		"re:$a+file-call_1 re:$a file pending re:$a+file-call_1|re:$a+whole-0123456789ab re:$a whole pending re:$a+whole-0123456789ab~1|"+
		"re:$a-2 re:$a text sent re:$a-2|re:$a-3   sent re:$a-3|re:$b-2   sent re:$b-2|re:$b-cd   sent re:$b-cd")
	expect.Equal(t, value(t, db, `SELECT group_concat(txn, '|' ORDER BY txn) FROM redacted_txn`), "re:$a|re:$a+whole-0123456789ab|re:$a~1")
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

var errTest = errors.New("a test")

func letters(t *testing.T) *store.DB {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "bot.db"), migrations(`CREATE TABLE letter (n INTEGER NOT NULL UNIQUE, name TEXT);`))
	run(t, db, `INSERT INTO letter VALUES (1, 'a'), (2, 'b'), (3, 'c')`)
	return db
}

// TestInTxIsAtomic: what do did stays if it returns nil.
func TestInTxIsAtomic(t *testing.T) {
	db := letters(t)
	insert := func(n int, then error) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO letter VALUES (?, 'new')`, n); err != nil {
				return err
			}
			return then
		}
	}
	expect.OK(t, errors.Join(store.InTx(t.Context(), db, insert(4, nil)), store.InTx(t.Context(), db, insert(5, nil))))
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

// TestRowsAreClosed reads on the connection that writes, the only one: rows left open would keep the
// next query waiting.
func TestRowsAreClosed(t *testing.T) {
	db := letters(t).DB
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
