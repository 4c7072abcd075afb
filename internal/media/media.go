// Package media stores the files that come with messages. Files are named by a hash of their
// content, readable by the owner only, and typed by content, not by the sender's claim. It scales
// pictures for models and extracts text.
//
// pdftotext reads PDF files in a process of its own: no environment, 256 MB, ten seconds of
// processor time, input by a pipe, 4 MB of output. With Landlock it can open only programs and
// libraries, and has no network (sandbox.Reader).
package media

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
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

	"reverie/internal/pace"
)

// Folder is where the files are, below the data folder.
const Folder = "media"

// Store stores files in Folder of a data folder. It is safe for concurrent use.
type Store struct {
	dir     string // the data folder
	maxSide int    // pixels of a picture's longest side

	pictureLock sync.Mutex // one picture at a time: decoded, they are large
	pdfLock     sync.Mutex // one PDF file at a time, for the same reason
}

// Open returns the store in the data folder dir. Pictures get at most side pixels on each side; 0 =
// 1024.
func Open(dir string, side int) *Store {
	if side <= 0 {
		side = 1024
	}
	return &Store{dir: dir, maxSide: side}
}

// Stored is a stored file.
type Stored struct {
	Path string // below the data folder, with slashes
	Type string // MIME type, by content
	Size int64  // bytes
}

// TooLargeError means that a file is larger than Most bytes.
type TooLargeError struct{ Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than %s", FormatSize(e.Most))
}

// Save stores the content of r, at most most bytes. It closes r if that is an io.Closer; if closing
// fails, nothing is stored, because the content is not verified. Equal contents are stored once.
func (s *Store) Save(r io.Reader, most int64) (k Stored, err error) {
	dir := filepath.Join(s.dir, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Stored{}, fmt.Errorf("store a file: %w", err)
	}
	f, err := os.CreateTemp(dir, ".new-*") // readable by the owner only
	if err != nil {
		return Stored{}, fmt.Errorf("store a file: %w", err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	in, sum := bufio.NewReader(io.LimitReader(r, most+1)), sha256.New()
	begin, _ := in.Peek(512) // Copy reports the same error again
	kind := Sniff(begin)
	n, err := io.Copy(io.MultiWriter(f, sum), in)
	if err != nil {
		return Stored{}, err
	}
	if n > most {
		return Stored{}, &TooLargeError{most}
	}
	if c, ok := r.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return Stored{}, err
		}
	}
	if err := f.Sync(); err != nil {
		return Stored{}, fmt.Errorf("store a file: %w", err)
	}
	name := hex.EncodeToString(sum.Sum(nil)[:16]) + cmp.Or(extensions[kind], ".bin")
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return Stored{}, fmt.Errorf("store a file: %w", err)
	}
	return Stored{Path: path.Join(Folder, name), Type: kind, Size: n}, nil
}

// Sniff returns the MIME type of content with this beginning, without parameters.
func Sniff(begin []byte) string {
	kind, _, err := mime.ParseMediaType(http.DetectContentType(begin))
	if err != nil {
		return "application/octet-stream"
	}
	return kind
}

// extensions of files by type; others get .bin.
var extensions = map[string]string{
	"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp",
	"text/plain": ".txt", "text/html": ".html", "text/xml": ".xml", "application/pdf": ".pdf",
	"application/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/wave": ".wav",
	"video/mp4": ".mp4", "video/webm": ".webm", "application/zip": ".zip",
}

// Open opens a stored file. A path outside the store is an error.
func (s *Store) Open(name string) (*os.File, error) {
	rest, ok := strings.CutPrefix(name, Folder+"/")
	if !ok {
		return nil, fmt.Errorf("%q is not a stored file", name)
	}
	return os.OpenInRoot(filepath.Join(s.dir, Folder), rest)
}

// File returns the path of a stored file on this machine.
func (s *Store) File(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// read returns a stored file of at most most bytes.
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

// Remove deletes stored files and their derived files. A missing file is no error.
func (s *Store) Remove(names ...string) error {
	var all []error
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		if path.Dir(name) != Folder || len(base) != 32 {
			continue // not a stored file
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

// sweep deletes files older than before whose Stem is not in used. It returns how many.
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

// Stem identifies a content: the part of the path that a file and its derived files share.
func Stem(name string) string {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	return stem
}

// maxName is the longest name that is shown, in characters.
const maxName = 80

// Name makes a sender's file name safe to show: one line without path, control characters and
// brackets.
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

// FormatSize formats bytes for people.
func FormatSize(n int64) string {
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

// Uses list the files in use, by their paths.
type Uses struct {
	InMessages      func(context.Context) ([]string, error) // by a message
	InConversations func(context.Context) ([]string, error) // by a message of a conversation that may continue
	InTransit       func(context.Context) ([]string, error) // on their way from or to a room
}

// Files without a message are deleted after an hour. They exist, for example, when a message is
// redacted during the download. Files of messages that no conversation loads are deleted after a
// week, because compactions and !new can be undone.
const (
	sweepEvery  = 6 * time.Hour
	unnamedAge  = time.Hour
	unneededAge = 7 * 24 * time.Hour
)

// Run deletes unused files periodically until ctx ends.
func (s *Store) Run(ctx context.Context, u Uses, log *slog.Logger) error {
	for {
		if n, err := s.SweepUnused(ctx, u, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("files that nobody needs are not deleted", "err", err)
		} else if n > 0 {
			log.Info("files that nobody needs are deleted", "files", n)
		}
		if pace.Pause(ctx, nil, sweepEvery) != nil {
			return nil
		}
	}
}

// SweepUnused deletes the files that are unused now, and returns their number.
func (s *Store) SweepUnused(ctx context.Context, u Uses, now time.Time) (int, error) {
	total := 0
	for _, rule := range []struct {
		needed func(context.Context) ([]string, error)
		age    time.Duration
	}{{u.InMessages, unnamedAge}, {u.InConversations, unneededAge}} {
		used := map[string]bool{}
		for _, list := range []func(context.Context) ([]string, error){rule.needed, u.InTransit} {
			paths, err := list(ctx)
			if err != nil {
				return total, err
			}
			for _, p := range paths {
				used[Stem(p)] = true
			}
		}
		n, err := s.sweep(used, now.Add(-rule.age))
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}
