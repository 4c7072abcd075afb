// Package workspace keeps the files that tools work on: one folder for each circle of readers, and
// folders of the machine that an owner bound to a room.
//
//	data/work/READERS   work/… to the model: the members of a room, or one person in direct chats
//	a bound folder      NAME/… in one room; written only if the owner says so
//
// A new circle of readers has a new folder, so it does not see the files of an earlier circle. Programs
// may have put anything there: links, pipes, huge or swapped files. Every access goes through
// os.Root, opens regular files only, and is bounded.
//
// A file has the integrity of what wrote it. The table work_file has the hash of what was last
// written here; a file without a row, or with another hash, is foreign. So a program cannot raise
// its own words, and a file that the model wrote for a person needs no approval when it is read.
// All files of bound folders are foreign.
package workspace

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Config says where files are. DefaultQuota is used if Quota is 0.
type Config struct {
	Dir     string // the data folder
	DB      *store.DB
	Quota   int64 // bytes of all files of one work folder
	Folders []Bound
}

// Bound is a folder of the machine that one room sees.
type Bound struct {
	Room  string // its id
	Path  string // absolute
	Name  string // begins its paths in the room
	Write bool
}

const (
	// DefaultQuota is the largest size of a work folder, in bytes.
	DefaultQuota = 100_000_000
	// MaxText is the largest file that is read as text, in bytes.
	MaxText = 4 << 20
	// Top begins the paths of the work folder.
	Top = "work"

	maxEntries = 10_000 // files and folders in a work folder
	maxDepth   = 30     // folders in one another
	maxPath    = 1000   // bytes
	maxName    = 255    // bytes; what file systems allow
	tempPrefix = ".reverie-new-"
)

// Store gives access to the folders. It is safe for concurrent use.
type Store struct {
	cfg Config
	mu  sync.Mutex // one change at a time, because of the quota
}

// Open returns the store. It makes no folder before something is written.
func Open(cfg Config) *Store {
	if cfg.Quota == 0 {
		cfg.Quota = DefaultQuota
	}
	return &Store{cfg: cfg}
}

// Folder returns the path of the work folder of a place. It need not exist.
func Folder(dataDir string, at trust.Place) string {
	return filepath.Join(dataDir, Top, folderName(at.Readers()))
}

func folderName(of trust.Readers) string { return store.FileName(string(of)) }

// Refused says for the model why a path cannot be used, and what to do instead.
type Refused string

func (r Refused) Error() string { return string(r) }

func refuse(format string, args ...any) Refused { return Refused(fmt.Sprintf(format, args...)) }

// ErrFolder means that a path is a folder, not a file.
var ErrFolder = errors.New("it is a folder")

// clean checks a model's path and splits it into its first part and the rest. It repairs nothing
// that leads upwards.
func clean(asked string) (top, rest string, err error) {
	p := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(asked), "/"), "./")
	if p == "data/"+Top || strings.HasPrefix(p, "data/"+Top+"/") {
		p = strings.TrimPrefix(p, "data/")
	}
	bad := len(p) > maxPath || strings.Count(p, "/") > maxDepth || !readable(p)
	for part := range strings.SplitSeq(p, "/") {
		bad = bad || part == "" || part == "." || part == ".." || len(part) > maxName || strings.HasPrefix(part, tempPrefix)
	}
	if bad {
		return "", "", refuse("%q is no path that can be used. Write one such as %s/notes.txt, without .. and control characters.",
			clip(asked), Top)
	}
	top, rest, _ = strings.Cut(p, "/")
	return top, rest, nil
}

// readable reports whether people and models see a name as it is: no control or formatting characters.
func readable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	})
}

func clip(s string) string { return text.Clip(strings.ToValidUTF8(s, "\uFFFD"), 80) }

// Has reports whether a path, valid or not, begins in one of the folders that the place sees.
func (s *Store) Has(at trust.Place, asked string) bool {
	p := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(asked), "./"), "data/")
	top, _, _ := strings.Cut(p, "/")
	return top == Top || s.bound(at, top) != nil
}

// InWork reports whether a change at path can only be in a work folder. Others need an owner.
func InWork(asked string) bool {
	top, _, err := clean(asked)
	return err == nil && top == Top
}

func (s *Store) bound(at trust.Place, name string) *Bound {
	i := slices.IndexFunc(s.cfg.Folders, func(b Bound) bool { return b.Name == name && b.Room == at.Room })
	if i < 0 {
		return nil
	}
	return &s.cfg.Folders[i]
}

// BoundNames lists the bound folders of a place.
func (s *Store) BoundNames(at trust.Place) (names []string) {
	for _, b := range s.cfg.Folders {
		if b.Room == at.Room {
			names = append(names, b.Name)
		}
	}
	return names
}

// spot is a checked path in an open folder.
type spot struct {
	root  *os.Root
	dir   string // the work folder's name; "" in a bound folder
	rest  string // below the folder; "." is the folder itself
	top   string // begins the model's path
	shown string // the model's path
	bound *Bound // nil in the work folder
}

// find opens the folder of a path. The caller closes root. With create the work folder is made.
func (s *Store) find(at trust.Place, asked string, create bool) (spot, error) {
	top, rest, err := clean(asked)
	if err != nil {
		return spot{}, err
	}
	p := spot{rest: path.Clean("./" + rest), top: top, shown: path.Join(top, rest)}
	if p.bound = s.bound(at, top); p.bound != nil {
		p.root, err = os.OpenRoot(p.bound.Path)
		return p, err
	}
	if top != Top {
		return spot{}, refuse("There is no folder %s here. Paths begin with: %s/.", clip(top),
			strings.Join(append([]string{Top}, s.BoundNames(at)...), "/, "))
	}
	if err := at.Readers().Check(); err != nil {
		return spot{}, err
	}
	p.dir = folderName(at.Readers())
	p.root, err = s.openWork(p.dir, create)
	if errors.Is(err, fs.ErrNotExist) && p.rest != "." {
		err = notThere(p.shown)
	}
	return p, err
}

// openWork opens a work folder. Neither it nor its parent may be a link.
func (s *Store) openWork(name string, create bool) (*os.Root, error) {
	data, err := os.OpenRoot(s.cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	name = path.Join(Top, name)
	if create {
		if err := data.MkdirAll(name, 0o700); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{Top, name} {
		info, err := data.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New(dir + " is no folder")
		}
		if err != nil {
			return nil, err
		}
	}
	return data.OpenRoot(name)
}

func notThere(shown string) error {
	return refuse("There is no file %s. list_files shows what is there.", shown)
}

// explain converts an error about a path into one for the model, where it is the path's fault.
func (p spot) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return notThere(p.shown)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENAMETOOLONG),
		strings.Contains(err.Error(), "path escapes"): // os.Root exports no value for it
		return refuse("%s cannot be used: it leads out of its folder, or through something that is no folder.", p.shown)
	case errors.Is(err, fs.ErrPermission):
		return refuse("%s cannot be used: its permissions do not allow it.", p.shown)
	}
	return err
}

// open opens a regular file. It never blocks on a pipe.
func (p spot) open() (*os.File, error) {
	info, err := p.root.Stat(p.rest)
	if err == nil {
		err = p.check(info)
	}
	if err != nil {
		return nil, p.explain(err)
	}
	f, err := p.root.OpenFile(p.rest, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, p.explain(err)
	}
	if info, err = f.Stat(); err == nil { // again: it may be another by now
		err = p.check(info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// check refuses what is not a regular file. A hard link in the work folder may be a file from
// elsewhere on the disk.
func (p spot) check(info fs.FileInfo) error {
	switch st, ok := info.Sys().(*syscall.Stat_t); {
	case info.IsDir():
		return ErrFolder
	case !info.Mode().IsRegular():
		return refuse("%s is no regular file and cannot be used.", p.shown)
	case p.bound == nil && (!ok || st.Nlink > 1):
		return refuse("%s has hard links and cannot be used; a copy of it can.", p.shown)
	}
	return nil
}

// Move moves the files of a room to the room that replaces it. Files that are there already stay.
// It may be repeated.
func (s *Store) Move(ctx context.Context, from, to string) error {
	if from == to || from == "" || to == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, now := folderName(trust.RoomReaders(from)), folderName(trust.RoomReaders(to))
	err := store.MoveEntries(s.cfg.Dir, path.Join(Top, old), path.Join(Top, now))
	return store.Wrap(errors.Join(err, s.moveLabels(ctx, old, now)), "work folder: move room")
}

// syncDir makes new names in a folder durable.
func syncDir(root *os.Root, dir string) error {
	d, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// label is what was last written at a path.
type label struct {
	hash      string
	integrity trust.Integrity
}

// of returns the integrity of a file with this content: that of what was written, or foreign.
func (l label) of(data []byte) trust.Integrity {
	if l.hash != fmt.Sprintf("%x", sha256.Sum256(data)) {
		return trust.Foreign
	}
	return l.integrity
}

// labels returns the labels of a work folder by path. A bound folder ("") has none.
func (s *Store) labels(ctx context.Context, dir string) (map[string]label, error) {
	all := map[string]label{}
	if dir == "" {
		return all, nil
	}
	err := store.Each(ctx, s.cfg.DB, func(row store.Row) error {
		var path string
		var l label
		err := row.Scan(&path, &l.hash, &l.integrity)
		all[path] = l
		return err
	}, `SELECT path, hash, integrity FROM work_file WHERE folder = ?`, dir)
	return all, store.Wrap(err, "work folder: read labels")
}

// setLabel stores the label of a path, and drops those of files that are gone. Without a label, or if the
// program is killed before it is stored, the file is foreign.
func (s *Store) setLabel(ctx context.Context, dir, path string, l label, there map[string]bool) error {
	err := store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM work_file WHERE folder = ? AND path NOT IN (SELECT value FROM json_each(?))`,
			dir, store.Array(slices.Collect(maps.Keys(there))))
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO work_file (folder, path, hash, integrity) VALUES (?, ?, ?, ?)`,
				dir, path, l.hash, l.integrity)
		}
		return err
	})
	return store.Wrap(err, "work folder: store label")
}

// moveLabels moves the labels of a folder. Where both folders had a file, the label of the moved one is
// dropped.
func (s *Store) moveLabels(ctx context.Context, old, now string) error {
	return store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE OR IGNORE work_file SET folder = ? WHERE folder = ?`, now, old)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM work_file WHERE folder = ?`, old)
		}
		return err
	})
}
