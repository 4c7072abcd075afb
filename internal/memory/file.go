package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"reverie/internal/store"
)

// MaxFile is the size in bytes of the largest memory file that is read; a larger one is a mistake,
// and must not take the memory of the process with it.
const MaxFile = 16 << 20

// FileSizeError means that a memory file is larger than MaxFile, and not read.
type FileSizeError struct {
	File string // relative to the data folder, or its name alone
	Size int64  // bytes
}

func (e *FileSizeError) Error() string {
	return fmt.Sprintf("it is larger than %d MiB: split it or shorten it", MaxFile>>20)
}

// LargeFiles lists the memory files in the data folder dir that are too large to be read.
func LargeFiles(dir string) ([]FileSizeError, error) {
	var large []FileSizeError
	for _, pattern := range []string{ownersFile, "memories/*.txt", "memories/*/*.txt"} {
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, fmt.Errorf("look for memory files: %w", err)
		}
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
			if err == nil && info.Mode().IsRegular() && info.Size() > MaxFile {
				large = append(large, FileSizeError{name, info.Size()})
			}
		}
	}
	return large, nil
}

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
	data, err := readAll(f.path)
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

func readAll(path string) ([]byte, error) {
	r, _, data, err := openAll(path)
	if err != nil {
		return nil, err
	}
	return data, r.Close()
}

// openAll reads the file and leaves it open, with the stamp it had before.
func openAll(path string) (*os.File, store.Stamp, []byte, error) {
	stamp, err := store.Stat(path)
	if err != nil {
		return nil, stamp, nil, err
	}
	if stamp.Exists() && !stamp.Regular() { // before opening: a pipe would block
		return nil, stamp, nil, errors.New("it is not a regular file")
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, stamp, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = &FileSizeError{File: filepath.Base(path), Size: max(stamp.Size(), int64(len(data)))}
	}
	if err != nil {
		return nil, stamp, nil, errors.Join(err, r.Close())
	}
	return r, stamp, data, nil
}

var errChanged = errors.New("the file was changed meanwhile")

// replace puts data in the place of the file that was read as old at stamp,
// unless it was changed since: then it returns errChanged and nothing happened,
// or what was changed at the last moment is in its place again.
func (s *Store) replace(f *file, old *os.File, stamp store.Stamp, data []byte) error {
	if len(data) > MaxFile {
		return fmt.Errorf("it would grow beyond %d MiB: remove lines that are no longer needed", MaxFile>>20)
	}
	err := store.ReplaceFile(f.path, data, func() error {
		s.fault("rename")
		defer s.fault("looked")
		now, err := store.Stat(f.path)
		if err == nil && now != stamp {
			return errChanged
		}
		return err
	})
	if err != nil || old == nil {
		return err
	}
	return s.rescue(f, old, stamp)
}

// rescue looks at the replaced file once more. Somebody who wrote to it in the
// moment between our last look and the rename wrote into a file without a name;
// what it holds now is put in place, for the next try to read.
func (s *Store) rescue(f *file, old *os.File, stamp store.Stamp) error {
	now, err := store.StatFile(old)
	if err != nil || now.SameContent(stamp) {
		return nil // what cannot be seen cannot be rescued
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(old, MaxFile))
	if err != nil {
		return nil
	}
	s.log.Info("memory file was edited while it was written; both changes are kept", "file", f.name)
	if err := store.WriteFile(f.path, data); err != nil {
		return err
	}
	return errChanged
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
		names, err := filepath.Glob(filepath.Join(escapeGlob(s.dir), filepath.FromSlash(pattern)))
		failed = append(failed, err)
		for _, name := range names {
			if tail := name[strings.LastIndex(name, ".txt")+len(".txt"):]; strings.Trim(tail, "0123456789") == "" {
				failed = append(failed, os.Remove(name))
			}
		}
	}
	return errors.Join(failed...)
}

// escapeGlob makes a folder's name mean itself in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
