// Package media keeps what comes with messages in files: named by their content,
// readable by the owner only, and of a type that was found out and not believed.
// It makes pictures small enough for a model and text of what has text in it.
//
// pdftotext reads PDF files in a process with limits: no environment, 256 MB, ten seconds of a
// processor, input by a pipe, 4 MB of output. Where the kernel has Landlock, it opens programs
// and libraries only and reaches no network (pdf_linux.go).
package media

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Folder is where the files lie, below the data folder.
const Folder = "media"

// Store keeps files in Folder of a data folder. It is safe for concurrent use.
type Store struct {
	dir  string // the data folder
	side int    // pixels, of a picture's longest side

	drawing sync.Mutex // one picture at a time: decoded they are large
	reading sync.Mutex // one PDF file at a time, for the same reason
}

// Open returns the files in the data folder dir. Pictures are made at most side
// pixels wide and high; 0 = 1024.
func Open(dir string, side int) *Store {
	if side <= 0 {
		side = 1024
	}
	return &Store{dir: dir, side: side}
}

// Kept is a file as it is kept.
type Kept struct {
	Path string // below the data folder, with slashes
	Type string // MIME type, found out from the content
	Size int64  // bytes
}

// TooLargeError means that a file has more bytes than it may have.
type TooLargeError struct{ Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than %s", Size(e.Most))
}

// Keep stores what r has, at most so many bytes. If r is an io.Closer, it is
// closed, and an error of that means that the content is not to be trusted; then
// nothing is kept. The same content is kept once.
func (s *Store) Keep(r io.Reader, most int64) (k Kept, err error) {
	dir := filepath.Join(s.dir, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Kept{}, fmt.Errorf("keep a file: %w", err)
	}
	f, err := os.CreateTemp(dir, ".new-*") // readable by the owner only
	if err != nil {
		return Kept{}, fmt.Errorf("keep a file: %w", err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	in, sum := bufio.NewReader(io.LimitReader(r, most+1)), sha256.New()
	begin, _ := in.Peek(512) // what goes wrong goes wrong again in Copy
	kind := Sniff(begin)
	n, err := io.Copy(io.MultiWriter(f, sum), in)
	if err != nil {
		return Kept{}, err
	}
	if n > most {
		return Kept{}, &TooLargeError{most}
	}
	if c, ok := r.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return Kept{}, err
		}
	}
	if err := f.Sync(); err != nil {
		return Kept{}, fmt.Errorf("keep a file: %w", err)
	}
	name := hex.EncodeToString(sum.Sum(nil)[:16]) + cmp.Or(extensions[kind], ".bin")
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return Kept{}, fmt.Errorf("keep a file: %w", err)
	}
	return Kept{Path: path.Join(Folder, name), Type: kind, Size: n}, nil
}

// Sniff is the MIME type of what begins so, without parameters.
func Sniff(begin []byte) string {
	kind, _, err := mime.ParseMediaType(http.DetectContentType(begin))
	if err != nil {
		return "application/octet-stream"
	}
	return kind
}

// extensions of files, by type: what is not here is .bin.
var extensions = map[string]string{
	"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp",
	"text/plain": ".txt", "text/html": ".html", "text/xml": ".xml", "application/pdf": ".pdf",
	"application/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/wave": ".wav",
	"video/mp4": ".mp4", "video/webm": ".webm", "application/zip": ".zip",
}

// Open opens a kept file. A path that leads elsewhere is an error.
func (s *Store) Open(name string) (*os.File, error) {
	rest, ok := strings.CutPrefix(name, Folder+"/")
	if !ok {
		return nil, fmt.Errorf("%q is no kept file", name)
	}
	root, err := os.OpenRoot(filepath.Join(s.dir, Folder))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(rest)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no kept file", name)
	}
	return root.Open(rest)
}

// File is where a kept file lies on this machine.
func (s *Store) File(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// read returns all of a kept file, if it has at most so many bytes.
func (s *Store) read(name string, most int64) ([]byte, error) {
	f, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &TooLargeError{most}
	}
	return io.ReadAll(f)
}

// Remove deletes kept files and what was made of them. One that is not there is
// no error.
func (s *Store) Remove(names ...string) error {
	var all []error
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		if path.Dir(name) != Folder || len(base) != 32 {
			continue // none of ours
		}
		made, err := filepath.Glob(filepath.Join(s.dir, Folder, base+"*"))
		all = append(all, err)
		for _, m := range made {
			if err := os.Remove(m); !errors.Is(err, fs.ErrNotExist) {
				all = append(all, err)
			}
		}
	}
	return errors.Join(all...)
}

// sweep deletes the files that came before a time and that used does not have, by
// the part of their name before the first dot; see Stem. It returns how many.
func (s *Store) sweep(used map[string]bool, before time.Time) (int, error) {
	dir := filepath.Join(s.dir, Folder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("clear files: %w", err)
	}
	n := 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) || used[Stem(e.Name())] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return n, fmt.Errorf("clear files: %w", err)
		}
		n++
	}
	return n, nil
}

// Stem names a content, whatever was made of it: the part of its path that is the
// same for a file and a picture made of it.
func Stem(name string) string {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	return stem
}

// maxName is how many characters of a name are shown.
const maxName = 80

// Name makes what a sender calls a file fit to be shown: one line without path,
// control characters, or brackets that mean something where it stands.
func Name(s string) string {
	s = strings.ToValidUTF8(s[strings.LastIndexAny(s, `/\`)+1:], "")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == 0x2028, r == 0x2029:
			return -1
		case strings.ContainsRune("[]<>\"`", r):
			return '_'
		}
		return r
	}, s)
	s = strings.Trim(strings.Join(strings.Fields(s), " "), ". ")
	if utf8.RuneCountInString(s) > maxName {
		r := []rune(s)
		ext := []rune(path.Ext(s))
		if len(ext) > 10 {
			ext = nil
		}
		s = string(r[:maxName-1-len(ext)]) + "…" + string(ext)
	}
	if s == "" {
		return "file"
	}
	return s
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%d bytes", n)
}
