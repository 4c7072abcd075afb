package section

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/store"
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

// keptFile is a file as it was when it was read.
type keptFile struct {
	stamp store.Stamp
	text  text
}

// read returns the file name, or its built-in default if it is missing or unreadable. name has
// slashes and is relative to the data folder. A file that did not change is not read again.
func (s *Sources) read(name string) *text {
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	stamp, err := store.Stat(path)
	if err == nil && !stamp.Exists() {
		return s.builtin(name)
	}
	if kept, ok := s.cache.files.Load(name); ok && kept.(keptFile).stamp == stamp {
		t := kept.(keptFile).text
		return &t
	}
	now := time.Now() // real time, comparable to the file's
	var data []byte
	if err == nil {
		data, err = readFile(path, stamp)
	}
	if err == nil {
		t := clean(data)
		if stamp.Conclusive(now) {
			s.cache.files.Store(name, keptFile{stamp, *t})
		}
		return t
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err // the problem names the file already
	}
	t := s.builtin(name)
	t.problem, t.builtin = fmt.Sprintf("cannot be read (%v)", err), false
	if t.exists {
		t.problem += "; the built-in text is used"
	}
	return t
}

// builtin returns the default of a missing file.
func (s *Sources) builtin(name string) *text {
	data, err := fs.ReadFile(s.Defaults, name)
	if err != nil {
		return &text{problem: missing}
	}
	t := clean(data)
	return &text{text: t.text, exists: true, builtin: true, problem: "is missing; the built-in text is used"}
}

// readFile reads the file at path, with its stamp.
func readFile(path string, stamp store.Stamp) ([]byte, error) {
	switch {
	case !stamp.Regular():
		return nil, errors.New("not a regular file")
	case stamp.Size() > maxFile:
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
