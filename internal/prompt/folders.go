package prompt

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"reverie/internal/store"
)

// folder is how a folder was when a request began: a file that was missing is
// still, as long as its folder did not change, and need not be looked for.
type folder struct {
	stamp   store.Stamp
	settled bool // what is found missing now is missing whenever the stamp is this
	known   bool
}

// folders are those that a request looked at, once each.
type folders struct {
	dir string // the data folder
	mu  sync.Mutex
	at  map[string]*folder
}

// of is the folder of a file, which is called by its name below the data folder.
func (f *folders) of(name string) *folder { return f.look(path.Dir(name)) }

func (f *folders) look(dir string) *folder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.at[dir]; got != nil {
		return got
	}
	if f.at == nil {
		f.at = map[string]*folder{}
	}
	stamp, err := store.Stat(filepath.Join(f.dir, filepath.FromSlash(dir)))
	got := &folder{stamp: stamp, known: err == nil, settled: err == nil && stamp.Settled(time.Now())}
	f.at[dir] = got
	return got
}

// lacks reports whether the folder alone tells that a file is missing, as it was
// when it was looked at last.
func (f *folder) lacks(last *file) bool {
	if f == nil || !f.known || last == nil || !last.missing {
		return false
	}
	return !f.stamp.Exists() || last.folder.Exists() && last.folder == f.stamp
}

// note returns last, the file at path that was just found missing, with what
// later requests can tell that by. A link that leads nowhere is not it: what it
// leads to lies in another folder.
func (f *folder) note(last *file, path string) *file {
	if f == nil || !f.settled || !f.stamp.Exists() || last.folder == f.stamp {
		return last
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return last
	}
	next := *last
	next.folder = f.stamp
	return &next
}
