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

// Config holds the dependencies and settings of a Store.
type Config struct {
	DB    *store.DB // with the tables of the migrations; the caller closes it
	Dir   string    // the data folder
	Owner string    // the Matrix id whose private file is MEMORIES.txt; may be empty
	// FileLines is how many entries a file shows besides the pinned ones; 0 = all.
	FileLines int
	Backend   string          // its name in package backend; "" = flat_file; with another, FileLines is 40 if it is not set
	Vectors   *vector.Vectors // of the same database; nil = full-text search only
	Server    backend.Server  // compares Vectors; nil = they are compared in this process
	// Rerank sorts texts by how well each answers a question, best first, and returns their indexes. nil = hits
	// stay as the search ranks them.
	Rerank func(ctx context.Context, question string, texts []string) ([]int, error)
	// Purge removes forgotten texts from the rest of the database, in the same transaction. It
	// returns how many messages of people still hold them. nil = no other table quotes entries.
	Purge func(ctx context.Context, tx *sql.Tx, texts []string) (kept int, err error)
	// BeforeForget indexes all messages so far, so that a forget also reaches the newest ones.
	// nil = they are indexed already.
	BeforeForget func(ctx context.Context) error
	Log          *slog.Logger
}

// Store reads and changes the entries. It is safe for concurrent use, also beside other processes
// and people who edit the files.
type Store struct {
	db           *store.DB
	dir          string
	fileLines    int // Config.FileLines
	files        *file.Files
	purge        func(context.Context, *sql.Tx, []string) (int, error)
	beforeForget func(context.Context) error
	log          *slog.Logger
	index        *search.Hybrid
	find         func(context.Context, Query) ([]search.Hit, error) // Search of index; tests replace it
	rerank       func(context.Context, string, []string) ([]int, error)
	vectors      *vector.Vectors    // woken by changes; may be nil
	server       backend.Server     // may be nil
	partial      bool               // prompts show the working set only
	fault        func(point string) // for tests, which kill the process or edit a file there

	writing    sync.Mutex      // one change at a time
	forgetting map[string]bool // text.Hash of each entry that is being forgotten

	mu     sync.Mutex
	caches map[Scope]*scopeCache
}

// Open returns the store of the entries in c.DB and of the files in c.Dir. It reads edits made to
// the files in the meantime, and files that the database does not know yet. A file that cannot be
// read is logged and does not keep the others from being opened.
func Open(ctx context.Context, c Config) (*Store, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	s := &Store{db: c.DB, dir: dir, fileLines: c.FileLines, purge: c.Purge, beforeForget: c.BeforeForget,
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), fault: func(string) {}, caches: map[Scope]*scopeCache{},
		index: search.OpenHybrid(search.Open(c.DB), c.Vectors, c.Server), vectors: c.Vectors, server: c.Server, rerank: c.Rerank}
	s.find, s.partial = s.index.Search, !backend.Of(c.Backend).Whole
	if s.partial && s.fileLines == 0 {
		s.fileLines = workingSetSize
	}
	s.files = file.Open(file.Config{DB: c.DB, Dir: dir, Owner: c.Owner, Partial: s.fileLines > 0, Entries: fileEntries{s}, Log: s.log,
		Fault: func(point string) { s.fault(point) }})
	if err := s.index.EnsureBuilt(ctx); err != nil {
		return nil, err
	}
	return s, s.syncAll(ctx)
}

// syncAll synchronises all files with the entries when the store opens.
func (s *Store) syncAll(ctx context.Context) error {
	unlock, err := s.lock()
	if err != nil {
		s.log.Error("memory files are not checked at start", "err", err)
		return nil
	}
	defer unlock()
	if err := s.files.RemoveTempFiles(); err != nil {
		s.log.Warn("temporary files of interrupted writes could not be removed", "err", err)
	}
	if err := s.files.RenameForOwner(ctx); err != nil {
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

// lock gives the caller exclusive access to entries and files, across processes.
func (s *Store) lock() (unlock func(), err error) {
	s.writing.Lock()
	free, err := store.LockFile(filepath.Join(s.dir, "memories", ".lock"))
	if err != nil {
		s.writing.Unlock()
		return nil, fmt.Errorf("memory: %w", err)
	}
	return func() { free(); s.writing.Unlock() }, nil
}

// File returns the path of the file of scope, relative to the data folder. It has forward slashes.
// It need not exist. An invalid scope gives "".
func (s *Store) File(scope Scope) string { return s.files.Name(scope) }

// shownCondition selects the entries that files and prompts show. Lines of an imported conversation
// are left out: they are many, and search finds them.
const shownCondition = `state = 'active' AND conversation = '' AND NOT ` + memberCondition

// Outline lists the active entries of scopes that are not part of a conversation, the newest first, with
// no more than their N, ObservedAt and Integrity. List reads the rest, with Filter.Numbers. It reads hand
// edits first; its errors are those of WorkingSet, and the entries are returned nevertheless.
func (s *Store) Outline(ctx context.Context, scopes ...Scope) ([]Entry, error) {
	_, unread := s.WorkingSet(ctx, scopes...)
	all, err := store.List(ctx, s.db, func(row store.Row) (e Entry, err error) {
		var at int64
		err = row.Scan(&e.N, &at, &e.Integrity)
		e.ObservedAt = fromMilli(at)
		return e, err
	}, `SELECT n, observed_at, integrity FROM memory WHERE scope IN (SELECT value FROM json_each(?)) AND `+shownCondition+`
		ORDER BY observed_at DESC, n DESC`, store.Array(scopes))
	return all, errors.Join(unread, store.Wrap(err, "memory"))
}

// WorkingSet lists what prompts show of scopes, whatever the question: the entries that the files show or,
// without a search index, all that are not part of a conversation. It goes scope by scope, each in the
// order of its file, and reads hand edits first. As long as nothing changes, it reads neither entries
// nor files again. The result is shared and must not be changed. If a file cannot be read or written
// the error names it, and the entries are returned nevertheless.
func (s *Store) WorkingSet(ctx context.Context, scopes ...Scope) ([]Entry, error) {
	var parts [][]Entry
	var failed []error
	for _, scope := range scopes {
		v, err := s.cacheOf(scope)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		v.mu.Lock()
		entries, err := v.workingSet(ctx, s)
		v.mu.Unlock()
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

// scopeCache caches the working set of one scope and the state of its file.
type scopeCache struct {
	scope Scope

	mu        sync.Mutex
	stat      file.StatCache
	snapshot  file.Snapshot
	fileStale bool // the file has to be rewritten
	loaded    bool // changes and entries are valid
	changes   int64
	entries   []Entry // what prompts show; never modified in place
}

// workingSet returns the current working set. v is locked, but not while its file is synchronised.
func (v *scopeCache) workingSet(ctx context.Context, s *Store) ([]Entry, error) {
	if err := v.reload(ctx, s); err != nil {
		return nil, err
	}
	same, err := s.files.Unchanged(v.scope, v.snapshot, &v.stat)
	if err == nil && (!same || v.fileStale) {
		v.mu.Unlock()
		err = s.syncFile(ctx, v.scope)
		v.mu.Lock()
		if err == nil {
			err = v.reload(ctx, s)
		}
	}
	return v.entries, err
}

// syncFile synchronises the file of scope with the entries. It ignores cancellation, because half a
// synchronisation would have to be repeated.
func (s *Store) syncFile(ctx context.Context, scope Scope) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.files.Sync(context.WithoutCancel(ctx), scope)
}

// reload reads the entries of v if they changed since the last call. v is locked.
func (v *scopeCache) reload(ctx context.Context, s *Store) (err error) {
	if v.snapshot, err = s.files.StoredSnapshot(ctx, v.scope); err != nil {
		return err
	}
	changes, err := store.Value[int64](ctx, s.db, `SELECT coalesce(max(n), 0) FROM memory_revision WHERE scope = ?`, v.scope)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	changes += v.snapshot.Changes
	if v.loaded && changes == v.changes {
		return nil
	}
	which, ids := `WHERE scope = ?1`, v.snapshot.IDs()
	if s.partial {
		which += ` AND n IN (SELECT one.n FROM json_each(?2) CROSS JOIN memory AS one ON one.id = value)`
	}
	all, err := selectEntries(ctx, s.db, which+` AND `+shownCondition+` ORDER BY n`, v.scope, store.Array(ids))
	if err != nil {
		return err
	}
	v.entries, v.fileStale = sortByFile(all, ids, s.fileLines == 0)
	v.changes, v.loaded = changes, true
	return nil
}

// sortByFile sorts entries by their lines in the file, those without a line last. It reports
// whether the file is stale: it lacks an entry (if whole) or shows one that is not active.
func sortByFile(all []Entry, ids []string, whole bool) ([]Entry, bool) {
	place := map[string]int{}
	for _, e := range all {
		place[e.ID] = len(ids)
	}
	for i := len(ids) - 1; i >= 0; i-- { // the first of duplicate lines counts
		place[ids[i]] = i
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	lacks := len(all) > 0 && place[all[len(all)-1].ID] == len(ids)
	return all, len(place) > len(all) || whole && lacks
}

// cacheOf returns the cache of scope. There is one per scope, so that its mutex protects it.
func (s *Store) cacheOf(scope Scope) (*scopeCache, error) {
	if err := scope.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.caches[scope] == nil {
		s.caches[scope] = &scopeCache{scope: scope}
	}
	return s.caches[scope], nil
}
