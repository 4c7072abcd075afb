// Package store keeps things safe on disk: it opens the SQLite database and
// brings its schema up to date, replaces files durably, writes the default data
// files, and locks a data folder against a second process.
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

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"
)

// pragmas hold for every connection of the pool.
//
// synchronous is FULL, not the NORMAL that is usual with WAL: under NORMAL a
// commit may vanish when the machine loses power. Ours are promises (this
// message was taken in, this reply was sent), and a promise that vanishes is a
// message lost or answered twice. The price is one fsync per commit, and a turn
// has only a handful of them.
var pragmas = []string{
	"busy_timeout(60000)", // writers wait for each other; as long as a new search index takes
	"synchronous(FULL)",
	"foreign_keys(1)",
	"secure_delete(1)", // what is deleted is overwritten: forgetting is a promise too
}

// maxConnections bounds memory (each connection has its own page cache) and
// still leaves room for a reader inside somebody's transaction.
const maxConnections = 8

// Open opens the SQLite database at path, making it (0600, folders 0700) when
// there is none, and applies those of migrations (goose SQL files) it lacks.
// The caller closes the database.
//
// A file that is no database of ours, is damaged, or has a newer schema is
// refused and left exactly as it is. Errors name the file and the remedy.
// Transactions started with BeginTx take the write lock at once, so that one
// that reads first never fails half-way.
func Open(ctx context.Context, path string, migrations fs.FS) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = prepareFile(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(abs, pragmas...))
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", abs, err)
	}
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections / 2)
	if err := migrate(ctx, db, migrations); err != nil {
		return nil, errors.Join(withRemedy(abs, err), db.Close())
	}
	return db, nil
}

// dsn escapes path, which may hold any character, into the driver's URI form.
func dsn(abs string, pragmas ...string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String()
}

// prepare makes the file, and makes it ours alone, before SQLite sees it: SQLite gives
// the -wal and -shm files the mode of the database.
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
		// SQLite would throw the log away together with what is in it.
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
		_ = os.Chmod(name, 0o600) // some file systems have no modes; the others may not be there
	}
	return errors.Join(f.Close(), syncDir(filepath.Dir(abs)))
}

// explain turns what SQLite says into what to do about it.
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

// makeDir makes dir and its missing parents, 0700, so that they survive a
// power cut.
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

// syncDir makes a new name in dir durable: fsync on the file alone does not.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some network file systems cannot do this and say EINVAL or ENOTSUP;
	// there is nothing better to do there.
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}
