// Package memory keeps what the assistant was told: one fact a line, in text
// files that people may edit, each file seen only by those it belongs to.
package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Scope says whom an entry belongs to. Make one with Private, Room or Shared.
type Scope string

// Shared entries are seen by everyone who may talk to the assistant.
const Shared Scope = "shared"

const (
	privatePrefix = "private:"
	roomPrefix    = "room:"
)

// Private is the scope of what user (a Matrix id) said in a direct chat.
func Private(user string) Scope { return Scope(privatePrefix + user) }

// Room is the scope of what was said in the room id among several people.
func Room(id string) Scope { return Scope(roomPrefix + id) }

// Visible lists the scopes that may be read in a conversation. The first is
// where its new entries go. private means a direct chat with user: only there
// is that person's private memory among them.
func Visible(room, user string, private bool) []Scope {
	if private {
		return []Scope{Private(user), Shared}
	}
	return []Scope{Room(room), Shared}
}

// Config says where the files are.
type Config struct {
	Dir   string // the data folder
	Owner string // the Matrix id whose private file is MEMORIES.txt; may be empty
	Log   *slog.Logger
}

// Store reads and writes the memory files. It is safe for concurrent use, also
// beside people and other processes that change the same files.
type Store struct {
	dir, owner string
	log        *slog.Logger

	mu    sync.Mutex
	files map[Scope]*file
	sets  map[set]*view
}

// maxScopes is how many scopes a set can have and still be kept ready; a
// conversation sees two.
const maxScopes = 4

// maxSets bounds the kept sets; beyond it they are made anew.
const maxSets = 64

type set [maxScopes]Scope

// view is several files' entries in one slice, and what it was made of.
type view struct {
	of      [maxScopes][]Entry
	entries []Entry
}

// Open returns the store of the memory files in c.Dir. It makes no file: that
// happens with the first entry.
func Open(c Config) (*Store, error) {
	if c.Dir == "" {
		return nil, errors.New("memory: no data folder given")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{dir: dir, owner: c.Owner, log: log, files: map[Scope]*file{}, sets: map[set]*view{}}, nil
}

// File names the file of scope, relative to the data folder and with forward
// slashes. It need not exist. A scope that is none of ours gives "".
func (s *Store) File(scope Scope) string {
	if scope == Shared {
		return "memories/shared.txt"
	}
	if user, ok := strings.CutPrefix(string(scope), privatePrefix); ok && user != "" {
		if user == s.owner {
			return "MEMORIES.txt"
		}
		return "memories/users/" + escape(user) + ".txt"
	}
	if room, ok := strings.CutPrefix(string(scope), roomPrefix); ok && room != "" {
		return "memories/rooms/" + escape(room) + ".txt"
	}
	return ""
}

// Entries lists what the files of scopes hold now, scope by scope, each in file
// order; comments and blank lines are left out, and a file that is not there
// holds nothing. Files that did not change since the last call cost one stat
// each, and then the very same slice is returned again: it is shared, so it must
// not be changed. When a file cannot be read the error names it, and the entries
// of the others come along.
func (s *Store) Entries(ctx context.Context, scopes ...Scope) ([]Entry, error) {
	var key set
	var parts [maxScopes][]Entry
	var failed []error
	if len(scopes) > maxScopes {
		return s.gather(ctx, scopes)
	}
	filled, last := 0, 0
	for i, scope := range scopes {
		entries, err := s.read(ctx, scope)
		if err != nil {
			failed = append(failed, err)
		}
		key[i], parts[i] = scope, entries
		if len(entries) > 0 {
			filled, last = filled+1, i
		}
	}
	switch filled {
	case 0:
		return nil, errors.Join(failed...)
	case 1:
		return parts[last], errors.Join(failed...)
	}
	return s.join(key, parts), errors.Join(failed...)
}

// gather is Entries without any keeping, for unusually many scopes.
func (s *Store) gather(ctx context.Context, scopes []Scope) ([]Entry, error) {
	var all []Entry
	var failed []error
	for _, scope := range scopes {
		entries, err := s.read(ctx, scope)
		all, failed = append(all, entries...), append(failed, err)
	}
	return all, errors.Join(failed...)
}

// join makes one slice of parts, or returns the one made of the same parts before.
func (s *Store) join(key set, parts [maxScopes][]Entry) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.sets[key]; v != nil && v.madeOf(parts) {
		return v.entries
	}
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	all := make([]Entry, 0, n)
	for _, p := range parts {
		all = append(all, p...)
	}
	if len(s.sets) >= maxSets {
		clear(s.sets)
	}
	s.sets[key] = &view{of: parts, entries: all}
	return all
}

// madeOf reports whether v consists of parts: the very same slices, which are
// never changed once made.
func (v *view) madeOf(parts [maxScopes][]Entry) bool {
	for i, p := range parts {
		if len(p) != len(v.of[i]) || len(p) > 0 && &p[0] != &v.of[i][0] {
			return false
		}
	}
	return true
}

func (s *Store) read(ctx context.Context, scope Scope) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.file(scope)
	if err != nil {
		return nil, err
	}
	return f.read()
}

// file returns the one file of scope; there is one per scope, so that its mutex
// means something.
func (s *Store) file(scope Scope) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[scope]; f != nil {
		return f, nil
	}
	name := s.File(scope)
	if name == "" {
		return nil, fmt.Errorf("memory: %q is no scope", scope)
	}
	f := &file{
		scope:  scope,
		name:   name,
		path:   filepath.Join(s.dir, filepath.FromSlash(name)),
		guard:  filepath.Join(s.dir, "memories", ".lock"),
		log:    s.log,
		now:    time.Now,
		meddle: func(moment) {},
	}
	s.files[scope] = f
	return f, nil
}
