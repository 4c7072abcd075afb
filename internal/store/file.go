package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// WriteFile replaces the file at path by data, durably. After success the new content survives a
// power failure; after an error (disk full, no permission) the old content is untouched. Readers
// never see a partial file. The file gets mode 0600, missing folders are created with 0700. A
// symbolic link is followed: its target is replaced.
func WriteFile(path string, data []byte) error {
	return ReplaceFile(path, data, nil)
}

// ReplaceFile is WriteFile with a final check: before, unless nil, is called after the new content
// is on disk and just before the rename. If before returns an error, the old content stays and
// ReplaceFile returns that error, wrapped.
func ReplaceFile(path string, data []byte, before func() error) error {
	return replaceFile(path, before, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteStream is WriteFile for content that write produces. If write fails, the old content stays.
func WriteStream(path string, write func(io.Writer) error) error {
	return replaceFile(path, nil, write)
}

func replaceFile(path string, before func() error, write func(io.Writer) error) (err error) {
	defer func() { err = Wrap(err, "write %s", path) }()
	target, err := resolveLink(path)
	dir := filepath.Dir(target)
	if err == nil {
		err = makeDir(dir)
	}
	if err != nil {
		return err
	}
	// The temporary file must be in the same folder: a rename from elsewhere is not atomic, and
	// TMPDIR may not be private.
	f, err := renameio.NewPendingFile(target, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	if err := writeAndReplace(f, before, write); err != nil {
		// If Cleanup fails, the temporary file stays; the write error is more important.
		_ = f.Cleanup()
		return err
	}
	return syncDir(dir) // renameio leaves this out
}

func writeAndReplace(f *renameio.PendingFile, before func() error, write func(io.Writer) error) error {
	if err := write(f); err != nil {
		return err
	}
	if before != nil {
		if err := f.Sync(); err != nil { // so that only the rename remains after before
			return err
		}
		if err := before(); err != nil {
			return err
		}
	}
	return f.CloseAtomicallyReplace()
}

// FreeSpace returns the free bytes of the file system of dir.
func FreeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}

// MoveEntries moves the files and folders in the folder from to the folder to. Both are below dir, with
// slashes. Names that exist in to stay where they are, so it may be repeated.
func MoveEntries(dir, from, to string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = root.MkdirAll(to, 0o700)
	}
	for _, e := range entries {
		if _, missing := root.Lstat(to + "/" + e.Name()); missing != nil && err == nil {
			err = root.Rename(from+"/"+e.Name(), to+"/"+e.Name())
		}
	}
	return err
}

// resolveLink returns the target of path if it is a symbolic link, else path.
func resolveLink(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", fmt.Errorf("it is a link that leads nowhere: %w", err)
		}
		return target, nil
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	}
	return path, nil
}

// Snapshot writes a consistent copy of db to path (0600, folders 0700), durably. An existing file
// is replaced. Others can read and write meanwhile. After an error there is no copy.
func Snapshot(ctx context.Context, db *DB, path string) error {
	return SnapshotFile(ctx, db.path, path)
}

// SnapshotFile is Snapshot for the SQLite database at from, which other programs may have open.
func SnapshotFile(ctx context.Context, from, path string) (err error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = makeDir(filepath.Dir(abs))
	}
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	part := abs + ".part"
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the database: %w", err)
			_ = os.Remove(part) // it may not exist
		}
	}()
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite accepts an empty file and keeps its mode
	if err != nil {
		return err
	}
	defer f.Close()
	db, err := sql.Open("sqlite", dsn(from, "busy_timeout(60000)"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(part, abs); err != nil {
		return err
	}
	return syncDir(filepath.Dir(abs))
}

// Stamp identifies a version of a file by its metadata, without reading it. The zero Stamp is a
// missing file. Stamps are compared with ==.
type Stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	dev, ino     uint64
	mode         uint32
}

// clockStep is the coarsest resolution of a file system's clock. Within it, two versions of a file
// may have the same stamp.
const clockStep = 2 * time.Second

// Stat returns the stamp of the file at path, following links. A missing file has the zero Stamp
// and no error.
func Stat(path string) (Stamp, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Stamp{}, nil
	}
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return Stamp{st.Size, st.Mtim.Nano(), st.Ctim.Nano(), uint64(st.Dev), st.Ino, uint32(st.Mode)}, nil
}

// Exists reports whether the file existed.
func (s Stamp) Exists() bool { return s != Stamp{} }

// Regular reports whether it is a regular file: reading another kind may block for ever.
func (s Stamp) Regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// Size is the length of the file in bytes.
func (s Stamp) Size() int64 { return s.size }

// Conclusive reports whether an equal stamp proves that the content is unchanged. The content was
// read at readAt, after s was taken. Shortly after a change it does not: another change in the same
// clock tick would have the same stamp.
func (s Stamp) Conclusive(readAt time.Time) bool {
	return readAt.UnixNano()-max(s.mtime, s.ctime) > int64(clockStep)
}
