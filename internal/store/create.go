package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// create makes the database at abs, where there is none, as migrations make it. Each of
// them is a commit, which would wait for the disk: so all are made in memory, and the
// file appears whole, or not at all. One that appears meanwhile is somebody's, and stays.
func create(ctx context.Context, abs string, migrations fs.FS) error {
	db, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each would have a memory of its own
	if err := migrate(ctx, db, migrations); err != nil {
		return err
	}
	image, err := serialize(ctx, db)
	if err != nil {
		return err
	}
	// Where the file cannot be put, Open goes on with an empty one, or says what is wrong:
	// there are file systems without links.
	_ = place(abs, image)
	return nil
}

// serialize returns db as a file would be in WAL mode, as all of ours are.
func serialize(ctx context.Context, db *sql.DB) (image []byte, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	err = c.Raw(func(inner any) error {
		whole, ok := inner.(interface{ Serialize() ([]byte, error) })
		if !ok {
			return errors.New("store: the SQLite driver is not the one that was built for")
		}
		image, err = whole.Serialize()
		return err
	})
	if err != nil {
		return nil, err
	}
	image[18], image[19] = 2, 2 // the versions to write and to read with
	return image, nil
}

// place makes the file at abs (0600), durably, unless there is one.
func place(abs string, image []byte) error {
	f, err := os.CreateTemp(filepath.Dir(abs), "."+filepath.Base(abs)+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(image)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), abs)
	}
	return errors.Join(err, os.Remove(f.Name()), syncDir(filepath.Dir(abs)))
}
