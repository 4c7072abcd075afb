package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
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
func ReplaceFile(path string, data []byte, before func() error) (err error) {
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
	if err := writeAndReplace(f, data, before); err != nil {
		// If Cleanup fails, the temporary file stays; the write error is more important.
		_ = f.Cleanup()
		return err
	}
	return syncDir(dir) // renameio leaves this out
}

func writeAndReplace(f *renameio.PendingFile, data []byte, before func() error) error {
	if _, err := f.Write(data); err != nil {
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
