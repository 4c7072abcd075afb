package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reverie/internal/search"
	"reverie/internal/search/backend"
	"reverie/internal/search/vector"
	"reverie/internal/store"
)

// Config says where the entries and the files are.
type Config struct {
	DB    *sql.DB // with the tables of the migrations; the caller closes it
	Dir   string  // the data folder
	Owner string  // the Matrix id whose private file is MEMORIES.txt; may be empty
	// FileLines is how many entries a file shows, besides those that are pinned;
	// 0 = all of them.
	FileLines int
	Backend   string          // its name in package backend; "" = flat_file; with another, FileLines is 40 if it is not set
	Vectors   *vector.Vectors // of the same database; nil = words alone decide
	Server    backend.Server  // of Vectors, which are compared there; nil = they are compared here
	// Purge takes texts that are to be forgotten out of whatever else in the
	// database quotes them, in the same transaction. It returns how many messages
	// of people still hold them. nil = nothing else does.
	Purge func(ctx context.Context, tx *sql.Tx, texts []string) (kept int, err error)
	// BeforeForget makes all searchable that was said until now, so that what is
	// forgotten leaves it too, instead of coming later. nil = all is.
	BeforeForget func(ctx context.Context) error
	Log          *slog.Logger
}

// Store reads and changes the entries. It is safe for concurrent use, also
// beside other processes, and people who edit the files.
type Store struct {
	db         *sql.DB
	dir, owner string
	lines      int
	purge      func(context.Context, *sql.Tx, []string) (int, error)
	prepare    func(context.Context) error // before something is forgotten
	log        *slog.Logger
	index      *search.Hybrid
	finder     finder          // what Search asks: index
	vectors    *vector.Vectors // woken by changes; nil = the index has none
	server     backend.Server  // where else vectors are; nil = nowhere
	recalls    bool            // prompts show the working set only
	now        func() time.Time
	fault      func(point string) // for tests, which die there, or edit a file at the worst moment

	writing    sync.Mutex      // one change at a time
	forgetting map[string]bool // text.Hash of what is being forgotten

	mu    sync.Mutex
	files map[Scope]*file
}

// Open returns the store of the entries in c.DB and of the files in c.Dir. What
// people did to the files meanwhile is taken in, and so are files that the
// database knows nothing of yet. A file that cannot be read is reported in the
// log and does not keep the others from being opened.
func Open(ctx context.Context, c Config) (*Store, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	s := &Store{db: c.DB, dir: dir, owner: c.Owner, lines: c.FileLines, purge: c.Purge, prepare: c.BeforeForget,
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: time.Now, fault: func(string) {}, files: map[Scope]*file{},
		index: search.OpenHybrid(search.Open(c.DB), c.Vectors, c.Server), vectors: c.Vectors, server: c.Server,
		recalls: !backend.Of(c.Backend).Whole}
	if s.finder = s.index; s.recalls && s.lines == 0 {
		s.lines = workingSet
	}
	if err := s.index.Ensure(ctx); err != nil {
		return nil, err
	}
	return s, s.begin(ctx)
}

// begin brings files and entries together at the start.
func (s *Store) begin(ctx context.Context) error {
	unlock, err := s.lock()
	if err != nil {
		s.log.Error("memory files are not looked at before they are needed", "err", err)
		return nil
	}
	defer unlock()
	if err := s.sweep(); err != nil {
		s.log.Warn("what a write that was cut off left is still there", "err", err)
	}
	if err := s.adopt(ctx); err != nil {
		return err
	}
	whole := true
	for _, scope := range s.onDisk() {
		if err := s.sync(ctx, scope); err != nil {
			s.log.Error("memory file is not in use", "err", err)
			whole = false
		}
	}
	if !whole {
		return nil
	}
	return s.finishPurge(ctx)
}

// onDisk lists the scopes that have files. Of a file whose name was shortened
// nobody knows the scope; it is found when that is asked for.
func (s *Store) onDisk() []Scope {
	var scopes []Scope
	for _, scope := range []Scope{Private(s.owner), Shared} {
		if scope.Check() != nil {
			continue
		}
		if _, err := os.Lstat(filepath.Join(s.dir, filepath.FromSlash(s.File(scope)))); err == nil {
			scopes = append(scopes, scope)
		}
	}
	names, _ := fs.Glob(os.DirFS(s.dir), "memories/*/*.txt") // the pattern is a good one
	for _, name := range names {
		id, _ := store.FileNameID(strings.TrimSuffix(path.Base(name), ".txt"))
		for _, scope := range []Scope{Private(id), Room(id)} {
			if id != "" && s.File(scope) == name {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// lock keeps everybody else from changing entries and files.
func (s *Store) lock() (unlock func(), err error) {
	s.writing.Lock()
	free, err := store.Guard(filepath.Join(s.dir, "memories", ".lock"))
	if err != nil {
		s.writing.Unlock()
		return nil, fmt.Errorf("memory: %w", err)
	}
	return func() { free(); s.writing.Unlock() }, nil
}

// ownersFile is the file of the first owner.
const ownersFile = "MEMORIES.txt"

// File names the file of scope, relative to the data folder and with forward
// slashes. It need not exist. A scope that is none of ours gives "".
func (s *Store) File(scope Scope) string {
	if scope == Shared {
		return "memories/shared.txt"
	}
	if user := scope.Person(); user != "" {
		if user == s.owner {
			return ownersFile
		}
		return "memories/users/" + store.FileName(user) + ".txt"
	}
	if room := scope.Room(); room != "" {
		return "memories/rooms/" + store.FileName(room) + ".txt"
	}
	return ""
}

// shown are the entries that stand in files and prompts. The lines of an imported
// conversation are found when they are needed: nobody wants to read them all.
const shown = `state = 'active' AND conversation = '' AND NOT ` + hidden

// Entries lists the active entries of scopes that are no part of a conversation,
// scope by scope, each in the order of its file; hand edits are taken in first. While nothing
// changes the entries and files are not read again. What it returns is shared and must not be
// changed. When a file cannot be read or written the error names it, and the entries come
// along all the same.
func (s *Store) Entries(ctx context.Context, scopes ...Scope) ([]Entry, error) {
	var parts [][]Entry
	var failed []error
	for _, scope := range scopes {
		entries, err := s.read(ctx, scope)
		failed = append(failed, err)
		if len(entries) > 0 {
			parts = append(parts, entries)
		}
	}
	if len(parts) == 1 {
		return parts[0], errors.Join(failed...)
	}
	return slices.Concat(parts...), errors.Join(failed...)
}

// changesOf is how often what is shown of scope ?1 was changed, or its order.
const changesOf = `coalesce((SELECT changes FROM memory_file WHERE scope = ?1), 0)
	+ coalesce((SELECT n FROM memory_changes WHERE scope = ?1), 0)`

// read is Entries of one scope.
func (s *Store) read(ctx context.Context, scope Scope) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.file(scope)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := s.load(ctx, f); err != nil {
		return nil, err
	}
	same, err := s.current(f)
	if err != nil {
		return f.entries, err
	}
	if same && !f.behind {
		return f.entries, nil
	}
	f.mu.Unlock()
	err = s.mend(ctx, scope)
	f.mu.Lock()
	if err != nil {
		return f.entries, err
	}
	err = s.load(ctx, f)
	return f.entries, err
}

// mend brings the file of scope and the entries together, whoever is waiting for
// it: half of that would have to be done again.
func (s *Store) mend(ctx context.Context, scope Scope) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.sync(context.WithoutCancel(ctx), scope)
}

// load reads the entries of f anew if they were changed since they were read last. f is locked.
func (s *Store) load(ctx context.Context, f *file) error {
	var changes int64
	var hash, lines string
	query := `SELECT ` + changesOf + `, coalesce(max(hash), ''), coalesce(max(lines), '') FROM memory_file WHERE scope = ?1`
	err := s.db.QueryRowContext(ctx, query, f.scope).Scan(&changes, &hash, &lines)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if hash != f.hash {
		f.hash, f.settled = hash, false
	}
	if f.loaded && changes == f.changes {
		return nil
	}
	all, err := entries(ctx, s.db, `WHERE scope = ? AND `+shown+` ORDER BY n`, f.scope)
	if err != nil {
		return err
	}
	ids := strings.Fields(lines)
	f.entries, f.behind = inOrder(all, ids, s.lines == 0)
	f.shows, f.changes, f.loaded = map[string]bool{}, changes, true
	for _, id := range ids {
		f.shows[id] = true
	}
	return nil
}

// inOrder puts entries into the order of the lines of their file, those that are
// not in it last, and reports whether the file lacks an entry (if it is to show
// all of them) or has one that does not count any more.
func inOrder(all []Entry, ids []string, whole bool) ([]Entry, bool) {
	place := map[string]int{}
	for i := len(ids) - 1; i >= 0; i-- { // of a line that stands there twice the first counts
		place[ids[i]] = i
	}
	at := func(e Entry) int {
		if i, shown := place[e.ID]; shown {
			return i
		}
		return len(ids)
	}
	shown := 0
	for _, e := range all {
		if at(e) < len(ids) {
			shown++
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(at(a), at(b)) })
	return all, shown < len(place) || whole && shown < len(all)
}

// file returns the one file of scope; there is one per scope, so that its mutex
// means something.
func (s *Store) file(scope Scope) (*file, error) {
	if err := scope.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[scope] == nil {
		s.files[scope] = s.newFile(scope)
	}
	return s.files[scope], nil
}

func (s *Store) newFile(scope Scope) *file {
	name := s.File(scope)
	return &file{scope: scope, name: name, path: filepath.Join(s.dir, filepath.FromSlash(name))}
}
