package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"reverie/internal/store"
)

// missing is the problem of a file that is neither on disk nor built in.
const missing = "is missing"

// maxFile is the most bytes that a prompt file may have.
const maxFile = 1 << 20

// A text is what a file said at one time. It never changes, so two equal
// pointers mean an unchanged file.
type text struct {
	text    string
	exists  bool // on disk or among the defaults
	builtin bool // not on disk
	problem string
}

// files reads prompt files from the data folder. A file is looked at each time
// and read again only when its time, size or identity changed.
type files struct {
	dir      string // the data folder
	defaults fs.FS  // what stands in for a missing file

	mu    sync.Mutex // for the map alone: one file that hangs must not stop the others
	known map[string]*slot
}

// slot is what is known of one file.
type slot struct {
	path string
	mu   sync.Mutex
	last *file
}

type file struct {
	read    bool        // it could be when last looked
	stamp   store.Stamp // then
	settled bool        // the stamp alone tells that nothing has changed since
	missing bool
	text    *text
}

func newFiles(dir string, defaults fs.FS) *files {
	return &files{dir: dir, defaults: defaults, known: map[string]*slot{}}
}

// read returns what the file called name (slashes, relative to the data folder)
// says now. A missing file reads as its built-in default, an unreadable one as it
// was when it could last be read.
func (f *files) read(name string) *text {
	s := f.slot(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	stamp, err := store.Stat(s.path)
	known := s.last
	if err == nil && known != nil && known.settled && known.stamp == stamp {
		return known.text
	}
	switch {
	case err == nil && !stamp.Exists():
		if known == nil || !known.missing {
			known = &file{missing: true, text: f.builtin(name)}
		}
	case err != nil:
		known = f.keep(name, known, err)
	default:
		var data []byte
		if data, err = readFile(s.path, stamp); err != nil {
			known = f.keep(name, known, err)
		} else {
			known = &file{read: true, stamp: stamp, settled: stamp.Settled(time.Now()), text: same(known, clean(data))}
		}
	}
	s.last = known
	return known.text
}

func (f *files) slot(name string) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.known[name]
	if s == nil {
		s = &slot{path: filepath.Join(f.dir, filepath.FromSlash(name))}
		f.known[name] = s
	}
	return s
}

// same returns what is known already if the file reads as before: equal pointers
// mean an unchanged file.
func same(known *file, now *text) *text {
	if known != nil && known.read && *known.text == *now {
		return known.text
	}
	return now
}

// keep answers for a file that is there but cannot be read.
func (f *files) keep(name string, known *file, err error) *file {
	if known != nil && !known.read && !known.missing {
		return known // as before
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the name stands beside the problem already
	}
	t := text{problem: fmt.Sprintf("cannot be read (%v)", err)}
	if known != nil && !known.missing {
		t.text, t.exists = known.text.text, true
		t.problem += "; what it said before is used"
	} else if old := f.builtin(name); old.exists {
		t.text, t.exists = old.text, true
		t.problem += "; the built-in text is used"
	}
	return &file{text: &t}
}

// builtin answers for a file that is missing.
func (f *files) builtin(name string) *text {
	if f.defaults == nil {
		return &text{problem: missing}
	}
	data, err := fs.ReadFile(f.defaults, name)
	if err != nil {
		return &text{problem: missing}
	}
	t := clean(data)
	return &text{text: t.text, exists: true, builtin: true, problem: "is missing; the built-in text is used"}
}

func readFile(path string, stamp store.Stamp) ([]byte, error) {
	if !stamp.Regular() {
		return nil, errors.New("not a regular file")
	}
	if stamp.Size() > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return os.ReadFile(path)
}

// clean makes text of what an editor wrote.
func clean(data []byte) *text {
	t := &text{exists: true}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		t.problem = "is not valid UTF-8; the broken characters are replaced"
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	t.text = strings.ReplaceAll(string(data), "\r\n", "\n")
	return t
}
