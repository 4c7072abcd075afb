// Package file keeps the memory files in step with the entries. Each scope has one file, and people may edit it
// at any time: the table memory_file has what each held when it was last written or read, and the difference
// is what a person did.
package file

import (
	"context"
	"database/sql"
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

// Entries are what the files show. What changes them runs in a transaction, and calls also at its end.
type Entries interface {
	// View is what the file of scope is to hold, knowing that it has the lines of ids.
	View(ctx context.Context, scope trust.Readers, ids []string) (lines.View, error)
	// Counts reports whether the entry id is active in scope, whether its file shows it or not.
	Counts(ctx context.Context, scope trust.Readers, id string) (bool, error)
	// TakeIn makes changes of what a person did to a file. also gets the entry of each of its lines.
	TakeIn(ctx context.Context, e Edit, also func(tx store.DBTX, ids []string) error) error
	// Move gives the entries of a scope to another.
	Move(ctx context.Context, from, to trust.Readers, also func(tx store.DBTX) error) error
}

// Edit is what a person did to a file.
type Edit struct {
	Scope    trust.Readers
	Name     string    // of the file, for people
	Before   []string  // the entry of each line it had; NotKept is none
	Texts    []string  // its lines now
	At       time.Time // when it was changed, if nothing is known of it yet
	Unedited bool      // the program was killed before it wrote what it had noted: no line is a person's
}

// NotKept stands for a line whose text is not taken in.
const NotKept = "-"

// Config says where the files are.
type Config struct {
	DB      *sql.DB
	Dir     string // the data folder
	Owner   string // the person whose file is MEMORIES.txt; may be empty
	Partial bool   // a file shows some of the entries only
	Entries Entries
	Log     *slog.Logger
	Fault   func(point string) // for tests
}

// Files are the memory files of a data folder. Whoever calls Sync, Adopt or Sweep holds the lock of the entries.
type Files struct{ c Config }

// Open returns the files of c.
func Open(c Config) *Files { return &Files{c} }

// ownersFile is the file of the first owner.
const ownersFile = "MEMORIES.txt"

// Name names the file of scope, relative to the data folder and with forward
// slashes. It need not exist. A scope that is none of ours gives "".
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

// path is where the file called name is.
func (f *Files) path(name string) string { return filepath.Join(f.c.Dir, filepath.FromSlash(name)) }

// Scopes lists the scopes that have files. Of a file whose name was shortened
// nobody knows the scope; it is found when that is asked for.
func (f *Files) Scopes() []trust.Readers {
	var scopes []trust.Readers
	for _, scope := range []trust.Readers{trust.Person(f.c.Owner), trust.Everybody} {
		if scope.Check() != nil {
			continue
		}
		if _, err := os.Lstat(f.path(f.Name(scope))); err == nil {
			scopes = append(scopes, scope)
		}
	}
	names, _ := fs.Glob(os.DirFS(f.c.Dir), "memories/*/*.txt") // the pattern is a good one
	for _, name := range names {
		id, _ := store.FileNameID(strings.TrimSuffix(path.Base(name), ".txt"))
		for _, scope := range []trust.Readers{trust.Person(id), trust.Room(id)} {
			if id != "" && f.Name(scope) == name {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// Noted is what a file held when it was last written or read.
type Noted struct {
	Changes    int64 // how often it was noted otherwise
	name, hash string
	lines      string // the entry of each line
}

// IDs are the entries of the lines.
func (n Noted) IDs() []string { return strings.Fields(n.lines) }

// Noted reads what is noted of the file of scope.
func (f *Files) Noted(ctx context.Context, scope trust.Readers) (n Noted, err error) {
	err = f.c.DB.QueryRowContext(ctx, `SELECT changes, name, hash, lines FROM memory_file WHERE scope = ?`, scope).
		Scan(&n.Changes, &n.name, &n.hash, &n.lines)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Noted{}, fmt.Errorf("read memory: %w", err)
	}
	return n, nil
}

func note(ctx context.Context, db store.DBTX, scope trust.Readers, n Noted) error {
	_, err := db.ExecContext(ctx, `INSERT INTO memory_file (scope, changes, name, hash, lines) VALUES (?1, 1, ?2, ?3, ?4)
		ON CONFLICT (scope) DO UPDATE SET changes = changes + (lines <> ?4), name = ?2, hash = ?3, lines = ?4`,
		scope, n.name, n.hash, n.lines)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// Seen is how a file looked when it last was as noted, so that it need not be read each time.
type Seen struct {
	stamp   store.Stamp
	settled bool // stamp alone tells whether the file is as it was
	hash    string
}

// Same reports whether the file of scope is as n says.
func (f *Files) Same(scope trust.Readers, n Noted, seen *Seen) (bool, error) {
	name := f.Name(scope)
	stamp, err := store.Stat(f.path(name))
	if err != nil {
		return false, fmt.Errorf("memory file %s: %w", name, err)
	}
	if !stamp.Exists() {
		return n.lines == "", nil
	}
	if *seen == (Seen{stamp, true, n.hash}) {
		return true, nil
	}
	readAt := time.Now()
	_, data, err := read(f.path(name))
	if err != nil {
		return false, fmt.Errorf("memory file %s: %w", name, err)
	}
	if sum(data) != n.hash {
		return false, nil
	}
	*seen = Seen{stamp, stamp.Settled(readAt), n.hash}
	return true, nil
}
