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
	"syscall"
	"unicode/utf8"
)

// missing is the problem of a file that is neither on disk nor built in.
const missing = "is missing"

// maxFile is the most bytes that a prompt file may have.
const maxFile = 1 << 20

// A text is what a file said at one time.
type text struct {
	text    string
	exists  bool // on disk or among the defaults
	builtin bool // not on disk
	problem string
}

// files reads prompt files from the data folder.
type files struct {
	dir      string // the data folder
	defaults fs.FS  // what stands in for a missing file

	mu   sync.Mutex
	last map[string]string // what a file said when it was last read
}

func newFiles(dir string, defaults fs.FS) *files {
	return &files{dir: dir, defaults: defaults, last: map[string]string{}}
}

// read returns what the file called name (slashes, relative to the data folder)
// says now. A missing file reads as its built-in default, an unreadable one as it
// was when it could last be read.
func (f *files) read(name string) *text {
	data, err := readFile(filepath.Join(f.dir, filepath.FromSlash(name)))
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		delete(f.last, name)
		return f.builtin(name)
	case err != nil:
		return f.unreadable(name, err)
	}
	t := clean(data)
	f.last[name] = t.text
	return t
}

// unreadable answers for a file that is there but cannot be read.
func (f *files) unreadable(name string, err error) *text {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the name stands beside the problem already
	}
	t := &text{problem: fmt.Sprintf("cannot be read (%v)", err)}
	if last, ok := f.last[name]; ok {
		t.text, t.exists = last, true
		t.problem += "; what it said before is used"
	} else if old := f.builtin(name); old.exists {
		t.text, t.exists = old.text, true
		t.problem += "; the built-in text is used"
	}
	return t
}

// builtin answers for a file that is missing.
func (f *files) builtin(name string) *text {
	data, err := fs.ReadFile(f.defaults, name)
	if err != nil {
		return &text{problem: missing}
	}
	t := clean(data)
	return &text{text: t.text, exists: true, builtin: true, problem: "is missing; the built-in text is used"}
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxFile:
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
