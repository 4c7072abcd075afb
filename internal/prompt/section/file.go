package section

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// missing is the problem of a file that is neither on disk nor built in.
const missing = "is missing"

// maxFile is the largest prompt file, in bytes.
const maxFile = 1 << 20

// A text is the content of a file at one time.
type text struct {
	text    string
	exists  bool // on disk or among the defaults
	builtin bool // not on disk
	problem string
}

// files reads prompt files from the data folder.
type files struct {
	dir      string // the data folder
	defaults fs.FS  // substitutes for missing files
}

// read returns the file name, or its built-in default if it is missing or unreadable. name has
// slashes and is relative to the data folder.
func (f *files) read(name string) *text {
	data, err := readFile(filepath.Join(f.dir, filepath.FromSlash(name)))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return f.builtin(name)
	case err == nil:
		return clean(data)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the problem names the file already
	}
	t := f.builtin(name)
	t.problem, t.builtin = fmt.Sprintf("cannot be read (%v)", err), false
	if t.exists {
		t.problem += "; the built-in text is used"
	}
	return t
}

// builtin returns the default of a missing file.
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

// clean normalizes what an editor wrote.
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
