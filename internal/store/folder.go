package store

import (
	"os"
	"path/filepath"
	"time"
)

// Folder is a folder whose files are looked at again and again. Finding a file by its
// path is most of what Stat costs, so files are held by a handle, which tells that one
// is as it was; whatever else there is to tell, the path says. A handle reads nothing and
// keeps nobody from writing, replacing or removing the file. Not safe for concurrent use.
type Folder struct {
	dir     string
	stamp   Stamp
	settled bool // while the stamp is this, each name stands for the same file
	held    map[string]held
}

// held is a file that had a name in the folder, and how it was.
type held struct {
	file  *os.File // opened for nothing but this; closed with the Folder at the latest
	fd    int      // its own
	stamp Stamp
}

// mostHeld is how many handles a folder takes: a process may have a thousand or so.
const mostHeld = 256

// OpenFolder returns the folder dir, which need not exist yet.
func OpenFolder(dir string) *Folder { return &Folder{dir: dir, held: map[string]held{}} }

// Look takes the folder's own stamp, as Stat does, and says whether names that are
// looked for from now on are those that it stands for (Stamp.Settled). now is the time.
func (f *Folder) Look(now time.Time) (stamp Stamp, settled bool, err error) {
	stamp, err = Stat(f.dir)
	if stamp != f.stamp || !f.settled || err != nil {
		for name := range f.held {
			f.release(name)
		}
	}
	f.stamp, f.settled = stamp, err == nil && stamp.Exists() && stamp.Settled(now)
	return f.stamp, f.settled, err
}

// Stat takes the stamp of the file called name, which may be a path below the folder.
func (f *Folder) Stat(name string) (Stamp, error) {
	if h, ok := f.held[name]; ok {
		if now, err := statHandle(h.fd); err == nil && now == h.stamp {
			return now, nil
		}
		f.release(name) // written to, moved, removed or replaced
	}
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	stamp, err := Stat(path)
	if err != nil || !f.settled || !stamp.Regular() || stamp.dev != f.stamp.dev || filepath.Base(name) != name || len(f.held) >= mostHeld {
		return stamp, err
	}
	// A link is not held: it may lead to another file while its folder stays as it is.
	if file, now := hold(path); file != nil {
		f.held[name] = held{file, int(file.Fd()), stamp}
		if now != stamp {
			f.release(name)
		}
	}
	return stamp, nil
}

func (f *Folder) release(name string) {
	_ = f.held[name].file.Close() // nothing was written
	delete(f.held, name)
}
