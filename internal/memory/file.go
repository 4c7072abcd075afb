package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"reverie/internal/store"
)

// maxFile is the size in bytes of the largest memory file that is read; a larger one is a mistake,
// and must not take the memory of the process with it.
const maxFile = 16 << 20

// file is the memory file of one scope, and what is known of both.
type file struct {
	scope Scope
	name  string // for people
	path  string

	mu      sync.Mutex
	stamp   store.Stamp
	settled bool            // stamp alone tells whether the file is as it was
	hash    string          // of what it held when it was last written or read
	shows   map[string]bool // the entries that stood in it then; never changed once made
	behind  bool            // the entries changed since
	loaded  bool            // what follows was read
	changes int64
	entries []Entry // never changed once made
}

// current reports whether the file is as it was when it was last written or read.
func (s *Store) current(f *file) (bool, error) {
	stamp, err := store.Stat(f.path)
	if err != nil {
		return false, fmt.Errorf("memory file %s: %w", f.name, err)
	}
	if !stamp.Exists() {
		return len(f.shows) == 0, nil
	}
	if stamp == f.stamp && f.settled {
		return true, nil
	}
	readAt := s.now()
	_, data, err := readFile(f.path)
	if err != nil {
		return false, fmt.Errorf("memory file %s: %w", f.name, err)
	}
	f.stamp, f.settled = stamp, stamp.Settled(readAt)
	return sum(data) == f.hash, nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:16])
}

// readFile reads the file at path, with the stamp it had before; of one that is not there it is zero.
func readFile(path string) (store.Stamp, []byte, error) {
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

// replace puts data in the place of the file that had stamp when it was read, or returns
// errChanged if it was changed since.
func (s *Store) replace(f *file, stamp store.Stamp, data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("it would grow beyond %d MiB: remove lines that are no longer needed", maxFile>>20)
	}
	return store.ReplaceFile(f.path, data, func() error {
		s.fault("rename")
		now, err := store.Stat(f.path)
		if err == nil && now != stamp {
			return errChanged
		}
		return err
	})
}

// heading begins a new file: it is for people, who find it before any manual.
func (f *file) heading() []byte {
	return []byte("# What is remembered here (" + string(f.scope) + "), one fact a line.\n" +
		"# Edit freely: the next answer knows. Lines that start with # are ignored.\n")
}

// sweep removes what writes that were cut off left beside the memory files: it
// is a copy of what people may want to be forgotten. The lock is held, so none
// of them is in use.
func (s *Store) sweep() error {
	var failed []error
	for _, pattern := range []string{".MEMORIES.txt?*", "memories/.*.txt?*", "memories/*/.*.txt?*"} {
		names, err := fs.Glob(os.DirFS(s.dir), pattern)
		failed = append(failed, err)
		for _, name := range names {
			if tail := name[strings.LastIndex(name, ".txt")+len(".txt"):]; strings.Trim(tail, "0123456789") == "" {
				failed = append(failed, os.Remove(filepath.Join(s.dir, name)))
			}
		}
	}
	return errors.Join(failed...)
}
