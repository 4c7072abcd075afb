package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"reverie/internal/memory/file"
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
	db      *sql.DB
	dir     string
	lines   int // as Config.FileLines
	files   *file.Files
	purge   func(context.Context, *sql.Tx, []string) (int, error)
	prepare func(context.Context) error // before something is forgotten
	log     *slog.Logger
	index   *search.Hybrid
	finder  backend.Finder     // ranks what index holds
	vectors *vector.Vectors    // woken by changes; nil = the index has none
	server  backend.Server     // where else vectors are; nil = nowhere
	recalls bool               // prompts show the working set only
	fault   func(point string) // for tests, which die there, or edit a file at the worst moment

	writing    sync.Mutex      // one change at a time
	forgetting map[string]bool // text.Hash of what is being forgotten

	mu    sync.Mutex
	views map[Scope]*view
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
	s := &Store{db: c.DB, dir: dir, lines: c.FileLines, purge: c.Purge, prepare: c.BeforeForget,
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), fault: func(string) {}, views: map[Scope]*view{},
		index: search.OpenHybrid(search.Open(c.DB), c.Vectors, c.Server), vectors: c.Vectors, server: c.Server}
	b := backend.Of(c.Backend)
	s.finder, s.recalls = b.Find(s.index), !b.Whole
	if s.recalls && s.lines == 0 {
		s.lines = workingSet
	}
	s.files = file.Open(file.Config{DB: c.DB, Dir: dir, Owner: c.Owner, Partial: s.lines > 0, Entries: inFiles{s}, Log: s.log,
		Fault: func(point string) { s.fault(point) }})
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
	if err := s.files.Sweep(); err != nil {
		s.log.Warn("what a write that was cut off left is still there", "err", err)
	}
	if err := s.files.Adopt(ctx); err != nil {
		return err
	}
	whole := true
	for _, scope := range s.files.Scopes() {
		if err := s.files.Sync(ctx, scope); err != nil {
			s.log.Error("memory file is not in use", "err", err)
			whole = false
		}
	}
	if !whole {
		return nil
	}
	return finishPurge(ctx, s.db, s.log)
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

// File names the file of scope, relative to the data folder and with forward
// slashes. It need not exist. A scope that is none of ours gives "".
func (s *Store) File(scope Scope) string { return s.files.Name(scope) }

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

// view is what is known of the entries of one scope, and of the file that shows them.
type view struct {
	scope Scope

	mu      sync.Mutex
	seen    file.Seen
	noted   file.Noted
	shows   map[string]bool // the entries that stand in the file; never changed once made
	behind  bool            // the entries changed since
	loaded  bool            // what follows was read
	changes int64
	entries []Entry // never changed once made
}

// read is Entries of one scope.
func (s *Store) read(ctx context.Context, scope Scope) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := s.view(scope)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.load(ctx, s); err != nil {
		return nil, err
	}
	same, err := s.files.Same(scope, v.noted, &v.seen)
	if err != nil {
		return v.entries, err
	}
	if same && !v.behind {
		return v.entries, nil
	}
	v.mu.Unlock()
	err = s.mend(ctx, scope)
	v.mu.Lock()
	if err != nil {
		return v.entries, err
	}
	err = v.load(ctx, s)
	return v.entries, err
}

// mend brings the file of scope and the entries together, whoever is waiting for
// it: half of that would have to be done again.
func (s *Store) mend(ctx context.Context, scope Scope) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.files.Sync(context.WithoutCancel(ctx), scope)
}

// load reads the entries of v anew if they were changed since they were read last. v is locked.
func (v *view) load(ctx context.Context, s *Store) (err error) {
	if v.noted, err = s.files.Noted(ctx, v.scope); err != nil {
		return err
	}
	var changes int64
	query := `SELECT coalesce(max(n), 0) FROM memory_revision WHERE scope = ?`
	if err := s.db.QueryRowContext(ctx, query, v.scope).Scan(&changes); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	changes += v.noted.Changes
	if v.loaded && changes == v.changes {
		return nil
	}
	all, err := entries(ctx, s.db, `WHERE scope = ? AND `+shown+` ORDER BY n`, v.scope)
	if err != nil {
		return err
	}
	ids := v.noted.IDs()
	v.entries, v.behind = inOrder(all, ids, s.lines == 0)
	v.shows, v.changes, v.loaded = map[string]bool{}, changes, true
	for _, id := range ids {
		v.shows[id] = true
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

// view returns the one view of scope; there is one per scope, so that its mutex
// means something.
func (s *Store) view(scope Scope) (*view, error) {
	if err := scope.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.views[scope] == nil {
		s.views[scope] = &view{scope: scope}
	}
	return s.views[scope], nil
}
