// Package store keeps data safe on disk. It opens the SQLite database and migrates its schema,
// replaces files durably, writes the default data files, and locks a data folder against a second
// process.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// pragmas are set on every connection of the pool.
//
// synchronous is FULL, not NORMAL as usual with WAL: under NORMAL a commit may be lost in a power
// failure, and then a message would be lost or answered twice. FULL costs one fsync per commit; a
// turn has only a few.
var pragmas = []string{
	"busy_timeout(60000)", // milliseconds; enough to wait for a rebuild of the search index
	"synchronous(FULL)",
	"foreign_keys(1)",
	"secure_delete(1)", // overwrite deleted content, so that forgetting is complete
}

// MaxReaders is how many connections of a DB read at the same time. Each has its own page cache, and more than the
// processors have use for are slower.
var MaxReaders = min(max(4, runtime.GOMAXPROCS(0)), 8)

// DB is a SQLite database with one connection that writes and others that read. SQLite lets one write at a
// time; with more connections the others would sleep and try again, and nothing would be left to read with.
// So writers wait in line for their connection, and readers never wait for them.
//
// Methods that are not declared here use the connection that writes. A goroutine that has a transaction, or
// rows of RETURNING that are not closed, must not write by other means: it would wait for itself.
type DB struct {
	*sql.DB // one connection
	readers *sql.DB
	path    string // absolute
	writers writers
}

// QueryContext runs a query that changes nothing, or a statement with RETURNING. A query that has begun does not end with ctx.
func (db *DB) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	pool, ctx := db.poolFor(ctx, query)
	return pool.QueryContext(ctx, query, args...)
}

// QueryRowContext is QueryContext for one row.
func (db *DB) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	pool, ctx := db.poolFor(ctx, query)
	return pool.QueryRowContext(ctx, query, args...)
}

// poolFor returns where a query runs, and its context. With a context that may end, database/sql starts a goroutine for
// each query, which costs more than a small query itself. Who waits to write can give up, though.
func (db *DB) poolFor(ctx context.Context, query string) (*sql.DB, context.Context) {
	if strings.Contains(query, "RETURNING") {
		return db.DB, ctx
	}
	if ctx.Err() == nil {
		ctx = context.WithoutCancel(ctx)
	}
	return db.readers, ctx
}

// Close closes all connections.
func (db *DB) Close() error { return errors.Join(db.readers.Close(), db.DB.Close()) }

// Open opens the SQLite database at path, creating it (0600, folders 0700) if needed, and applies
// the missing migrations (goose SQL files). The caller closes the database.
//
// A file that is not a database of this program, is damaged, or has a newer schema is refused and
// left unchanged. Errors name the file and the remedy. Transactions of BeginTx take the write lock
// immediately, so that one that reads first never fails half-way.
func Open(ctx context.Context, path string, migrations fs.FS) (*DB, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = prepareFile(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	writer := openPool(1, dsn(abs, pragmas...))
	if err := migrate(ctx, writer, migrations); err != nil {
		return nil, errors.Join(withRemedy(abs, err), writer.Close())
	}
	return &DB{DB: writer, readers: openPool(MaxReaders, dsn(abs, slices.Concat(pragmas, []string{"query_only(1)"})...)), path: abs}, nil
}

func openPool(connections int, dsn string) *sql.DB {
	db := sql.OpenDB(connector{&sqlite.Driver{}, dsn})
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections) // a closed one loses its prepared statements
	return db
}

// dsn encodes path, which may contain any character, as the driver's URI.
func dsn(abs string, pragmas ...string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String()
}

// prepareFile creates the database file, readable by its owner only, before SQLite opens it: SQLite
// copies its mode to the -wal and -shm files.
func prepareFile(abs string) error {
	if err := makeDir(filepath.Dir(abs)); err != nil {
		return err
	}
	info, err := os.Stat(abs)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", abs)
	case missing || info.Size() == 0:
		// SQLite would delete the log with its content.
		if wal, err := os.Stat(abs + "-wal"); err == nil && wal.Size() > 0 {
			return fmt.Errorf("%s is missing or empty, but %s-wal still holds its latest changes; "+
				"restore both from a backup, or move the -wal file away to start afresh", abs, filepath.Base(abs))
		}
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w; the program needs to read and write this file", err)
	}
	for _, name := range []string{abs, abs + "-wal", abs + "-shm"} {
		_ = os.Chmod(name, 0o600) // some file systems have no modes, and -wal and -shm may not exist
	}
	return errors.Join(f.Close(), syncDir(filepath.Dir(abs)))
}

// withRemedy adds to a SQLite error what the operator can do.
func withRemedy(abs string, err error) error {
	remedy := ""
	switch sqliteCode(err) {
	case sqlite3.SQLITE_NOTADB:
		remedy = "this is not a SQLite database, or it is damaged; nothing was changed. Move it away to start afresh, or restore a backup"
	case sqlite3.SQLITE_CORRUPT:
		remedy = fmt.Sprintf("the database is damaged; nothing was thrown away. Copy %[1]s, %[1]s-wal and %[1]s-shm aside, "+
			"then restore a backup or try sqlite3's .recover", filepath.Base(abs))
	case sqlite3.SQLITE_FULL:
		remedy = "the disk is full; free some space and start again, nothing is lost"
	case sqlite3.SQLITE_IOERR:
		remedy = "the disk could not be read or written; check its health and free space"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		remedy = "the program may not write here; check the owner and mode of the file and its folder"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		remedy = "another program holds it; stop that one first"
	default:
		return fmt.Errorf("open database %s: %w", abs, err)
	}
	return fmt.Errorf("open database %s: %s (%w)", abs, remedy, err)
}

// makeDir creates dir and its missing parents, mode 0700, durably.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// syncDir makes new names in dir durable: an fsync of the file alone does not.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some network file systems return EINVAL or ENOTSUP; that has to be accepted.
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}

// sqliteCode returns the primary code of a SQLite error, its low byte; 0 = another kind of error.
func sqliteCode(err error) int {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code() & 0xff
	}
	return 0
}

// IsTransient reports whether a database error may disappear by itself or with help: a full or
// unwritable disk, or another program that locks the database. The same statement may work later.
func IsTransient(err error) bool {
	return slices.Contains([]int{sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}, sqliteCode(err))
}

// IsDiskFull reports whether err means a full disk or an exhausted quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || sqliteCode(err) == sqlite3.SQLITE_FULL
}
