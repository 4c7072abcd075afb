package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteFile replaces the file at path by data, durably: when it returns nil the
// new content survives a power cut, and when it returns an error (disk full, no
// permission) the old content is untouched. Readers see the old or the new
// content, never a part. The file gets mode 0600, missing folders are made 0700.
// A symbolic link is followed: the file it points to is replaced, not the link.
func WriteFile(path string, data []byte) error {
	return ReplaceFile(path, data, nil)
}

// ReplaceFile is WriteFile with a last look: before, unless nil, is called when the new content is
// safely on disk beside the old one, just ahead of the rename. When it returns an error the old
// content stays, and ReplaceFile returns that error, wrapped.
func ReplaceFile(path string, data []byte, before func() error) error {
	target, err := resolveLink(path)
	dir := filepath.Dir(target)
	if err == nil {
		err = makeDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	// The temporary file must lie in the same folder: a rename from elsewhere
	// is not atomic, and TMPDIR is not to be trusted with private text.
	f, err := renameio.NewPendingFile(target, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := writeAndReplace(f, data, before); err != nil {
		// Cleanup after a failed write can itself fail only by leaving the
		// temporary file behind; the cause is what matters.
		_ = f.Cleanup()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := syncDir(dir); err != nil { // renameio leaves this out
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeAndReplace(f *renameio.PendingFile, data []byte, before func() error) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if before != nil {
		if err := f.Sync(); err != nil { // so that nothing slow is left after the look
			return err
		}
		if err := before(); err != nil {
			return err
		}
	}
	return f.CloseAtomicallyReplace()
}

// follow resolves path when it is a symbolic link.
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
