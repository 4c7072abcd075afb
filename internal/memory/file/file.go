// Package file synchronises the memory files with the entries. Each scope has one file, which
// people may edit at any time. The table memory_file stores what each file held when it was last
// written or read; the difference to the file is a person's edit.
package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"reverie/internal/memory/lines"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Entries is the store behind the files. Methods that change it run in a transaction and call also
// at its end.
type Entries interface {
	// View returns what the file of scope should hold; ids are the entries of its present lines.
	View(ctx context.Context, scope trust.Readers, ids []string) (lines.View, error)
	// IsActive reports whether the entry id is active in scope, shown or not.
	IsActive(ctx context.Context, scope trust.Readers, id string) (bool, error)
	// ApplyEdit turns a person's edit of a file into changes. also gets the entry of each line.
	ApplyEdit(ctx context.Context, e Edit, also func(tx store.DBTX, ids []string) error) error
	// Move moves all entries of a scope to another.
	Move(ctx context.Context, from, to trust.Readers, also func(tx store.DBTX) error) error
}

// Edit is a person's edit of a file.
type Edit struct {
	Scope    trust.Readers
	Name     string    // the file's name, for messages
	Before   []string  // the entry of each line before, or Rejected
	Texts    []string  // the lines now
	At       time.Time // the file's time, if it is new to the database; else zero
	Unedited bool      // the program was killed before it wrote the file: no line is a person's
}

// Rejected stands in place of an entry id for a line that is not remembered.
const Rejected = "-"

// Config holds the dependencies and settings of Files.
type Config struct {
	DB      *store.DB
	Dir     string // the data folder
	Owner   string // the person whose file is MEMORIES.txt; may be empty
	Partial bool   // files show only some of the entries
	Entries Entries
	Log     *slog.Logger
	Fault   func(point string) // for tests
}

// Files are the memory files of a data folder. The caller of Sync, RenameForOwner or
// RemoveTempFiles must hold the lock of the entries.
type Files struct{ c Config }

// Open returns the files described by c.
func Open(c Config) *Files { return &Files{c} }

// ownersFile is the name of the first owner's file.
const ownersFile = "MEMORIES.txt"

// Name returns the path of the file of scope, relative to the data folder. It has forward slashes.
// It need not exist. An invalid scope gives "".
func (f *Files) Name(scope trust.Readers) string {
	if scope == trust.Everybody {
		return "memories/shared.txt"
	}
	if user := scope.Person(); user != "" {
		if user == f.c.Owner {
			return ownersFile
		}
		return "memories/users/" + store.FileName(user) + ".txt"
	}
	if room := scope.Room(); room != "" {
		return "memories/rooms/" + store.FileName(room) + ".txt"
	}
	return ""
}

func (f *Files) path(name string) string { return filepath.Join(f.c.Dir, filepath.FromSlash(name)) }

// Scopes lists the scopes that have files. It omits files with shortened names, because those do
// not tell the scope; they are found by Name.
func (f *Files) Scopes() []trust.Readers {
	var scopes []trust.Readers
	for _, scope := range []trust.Readers{trust.PersonReaders(f.c.Owner), trust.Everybody} {
		if scope.Check() != nil {
			continue
		}
		if _, err := os.Lstat(f.path(f.Name(scope))); err == nil {
			scopes = append(scopes, scope)
		}
	}
	names, _ := fs.Glob(os.DirFS(f.c.Dir), "memories/*/*.txt") // the pattern is valid
	for _, name := range names {
		id, _ := store.FileNameID(strings.TrimSuffix(path.Base(name), ".txt"))
		for _, scope := range []trust.Readers{trust.PersonReaders(id), trust.RoomReaders(id)} {
			if id != "" && f.Name(scope) == name {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// StoredSnapshot is what a file held when it was last written or read.
type Snapshot struct {
	Changes    int64 // how often the entries of the lines changed
	name, hash string
	lines      string // the entry id of each line, separated by spaces
}

// IDs returns the entry of each line.
func (n Snapshot) IDs() []string { return strings.Fields(n.lines) }

// StoredSnapshot reads the stored snapshot of the file of scope; zero = none.
func (f *Files) StoredSnapshot(ctx context.Context, scope trust.Readers) (n Snapshot, err error) {
	err = f.c.DB.QueryRowContext(ctx, `SELECT changes, name, hash, lines FROM memory_file WHERE scope = ?`, scope).
		Scan(&n.Changes, &n.name, &n.hash, &n.lines)
	_, err = store.Found(err)
	return n, store.Wrap(err, "read memory")
}

func saveSnapshot(ctx context.Context, db store.DBTX, scope trust.Readers, n Snapshot) error {
	_, err := db.ExecContext(ctx, `INSERT INTO memory_file (scope, changes, name, hash, lines) VALUES (?1, 1, ?2, ?3, ?4)
		ON CONFLICT (scope) DO UPDATE SET changes = changes + (lines <> ?4), name = ?2, hash = ?3, lines = ?4`,
		scope, n.name, n.hash, n.lines)
	return store.Wrap(err, "memory")
}

// StatCache is the stamp of a file that matched its snapshot. So the file need not be read each
// time.
type StatCache struct {
	stamp      store.Stamp
	conclusive bool // an equal stamp proves that the file is unchanged
	hash       string
}

// Unchanged reports whether the file of scope matches n.
func (f *Files) Unchanged(scope trust.Readers, n Snapshot, seen *StatCache) (bool, error) {
	name := f.Name(scope)
	stamp, err := store.Stat(f.path(name))
	if err != nil {
		return false, fmt.Errorf("memory file %s: %w", name, err)
	}
	if !stamp.Exists() {
		return n.lines == "", nil
	}
	if *seen == (StatCache{stamp, true, n.hash}) {
		return true, nil
	}
	readAt := time.Now()
	_, data, err := read(f.path(name))
	if err != nil {
		return false, fmt.Errorf("memory file %s: %w", name, err)
	}
	if hashOf(data) != n.hash {
		return false, nil
	}
	*seen = StatCache{stamp, stamp.Conclusive(readAt), n.hash}
	return true, nil
}

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
