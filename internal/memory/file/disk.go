package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// maxFile is the size in bytes of the largest memory file that is read. It protects the process
// from running out of memory.
const maxFile = 16 << 20

func hashOf(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:16])
}

// read reads the file at path and its stamp from before reading. A missing file gives a zero stamp.
func read(path string) (store.Stamp, []byte, error) {
	stamp, err := store.Stat(path)
	switch {
	case err != nil || !stamp.Exists():
		return stamp, nil, err
	case !stamp.Regular(): // before opening: a pipe would block
		return stamp, nil, errors.New("it is not a regular file")
	case stamp.Size() > maxFile:
		return stamp, nil, fmt.Errorf("it is larger than %d MiB: split it or shorten it", maxFile>>20)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return store.Stamp{}, nil, nil
	}
	return stamp, data, err
}

var errChanged = errors.New("the file was changed meanwhile")

// replace writes data to path. It returns errChanged if the file no longer has stamp.
func (f *Files) replace(path string, stamp store.Stamp, data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("it would grow beyond %d MiB: remove lines that are no longer needed", maxFile>>20)
	}
	return store.ReplaceFile(path, data, func() error {
		f.c.Fault("rename")
		now, err := store.Stat(path)
		if err == nil && now != stamp {
			return errChanged
		}
		return err
	})
}

// heading is the comment at the top of a new file. It explains the file to people.
func (f *Files) heading(scope trust.Readers) []byte {
	text := "# What is remembered here (" + string(scope) + "), one fact a line.\n" +
		"# Edit freely: the next answer knows. Lines that start with # are ignored.\n"
	if f.c.Partial {
		text += "# Shown is what is pinned, new or often used; `bot memory list` shows everything.\n"
	}
	return []byte(text)
}

// RemoveTempFiles removes temporary files of interrupted writes. They may hold forgotten texts.
func (f *Files) RemoveTempFiles() error {
	var failed []error
	for _, pattern := range []string{".MEMORIES.txt?*", "memories/.*.txt?*", "memories/*/.*.txt?*", "memories/users/*/.*.txt?*"} {
		names, err := fs.Glob(os.DirFS(f.c.Dir), pattern)
		failed = append(failed, err)
		for _, name := range names {
			if tail := name[strings.LastIndex(name, ".txt")+len(".txt"):]; strings.Trim(tail, "0123456789") == "" {
				failed = append(failed, os.Remove(filepath.Join(f.c.Dir, name)))
			}
		}
	}
	return errors.Join(failed...)
}
