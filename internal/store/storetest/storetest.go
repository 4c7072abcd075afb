// Package storetest gives tests databases, as a first start makes them, at a hundredth of
// the time: what the migrations do is done once for all tests of a package, and no commit or default file
// waits for the disk. That matters where a machine loses power, not where a program is
// killed. The tests of package store do without it, and so does the built binary.
package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"modernc.org/sqlite"

	"reverie"
	"reverie/internal/store"
)

// DoNotWait has no commit of this program wait for the disk from now on.
func DoNotWait() { doNotWait() }

var doNotWait = sync.OnceFunc(func() {
	sqlite.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
		_, err := c.ExecContext(context.Background(), `PRAGMA synchronous = OFF`, nil)
		return err
	})
})

// Open opens the database at path, and makes it first when there is none; see DoNotWait. The
// caller closes it.
func Open(t testing.TB, path string) (*store.DB, error) {
	t.Helper()
	DoNotWait()
	if err := put(path); err != nil {
		return nil, err
	}
	return store.Open(t.Context(), path, reverie.Migrations)
}

// WriteDefaults is store.WriteDefaults for the program's files and an empty folder, but does not wait for the disk.
func WriteDefaults(dir string) error {
	all, err := defaults()
	for path, b := range all {
		file := filepath.Join(dir, path)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, b, 0o600))
	}
	return err
}

// defaults are the files that store.WriteDefaults writes, by path.
var defaults = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "defaults")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := store.WriteDefaults(reverie.Data, dir); err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[path], err = os.ReadFile(filepath.Join(dir, path))
		}
		return err
	})
	return all, err
})

// put makes the file of a new database at path, unless there is one.
func put(path string) error {
	b, err := image()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// image is the file of a new database.
var image = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "database")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bot.db")
	db, err := store.Open(context.Background(), path, reverie.Migrations)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // the log goes into the file
		return nil, err
	}
	return os.ReadFile(path)
})
