package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"reverie/internal/trust"
)

// Read returns a text file of at most MaxText bytes, and its integrity. The error of a folder is
// ErrFolder.
func (s *Store) Read(ctx context.Context, at trust.Place, asked string) ([]byte, trust.Integrity, error) {
	p, err := s.find(at, asked, false)
	if err != nil {
		return nil, trust.Foreign, err
	}
	defer p.root.Close()
	return s.readText(ctx, p)
}

func (s *Store) readText(ctx context.Context, p spot) ([]byte, trust.Integrity, error) {
	data, err := p.read()
	if err != nil {
		return nil, trust.Foreign, err
	}
	known, err := s.labels(ctx, p.dir)
	return data, known[p.rest].of(data), err
}

func (p spot) read() ([]byte, error) {
	f, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxText+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > MaxText:
		return nil, refuse("%s is too large to be read as text (more than %d MiB).", p.shown, MaxText>>20)
	case !isText(data):
		return nil, refuse("%s is no text file and cannot be read as one.", p.shown)
	}
	return data, nil
}

func isText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }

// OpenFile opens a regular file of any content. The caller closes it. The error of a folder is ErrFolder.
func (s *Store) OpenFile(at trust.Place, asked string) (*os.File, error) {
	p, err := s.find(at, asked, false)
	if err != nil {
		return nil, err
	}
	defer p.root.Close()
	return p.open()
}

// Entry is a file in a list.
type Entry struct {
	Path string // as a model names it
	Size int64  // bytes
	Kind string // "" for a regular file
	// Integrity is that of the path: a name may hold words, too.
	Integrity trust.Integrity
}

// Listing is what a folder holds, without names that begin with a dot.
type Listing struct {
	Entries []Entry // sorted by path
	Skipped int     // whose names cannot be shown
	Cut     bool    // there are too many; the rest is left out
}

// List lists the files in a folder and its folders, or the one file. A missing work folder is empty.
func (s *Store) List(ctx context.Context, at trust.Place, asked string) (Listing, error) {
	p, err := s.find(at, asked, false)
	if errors.Is(err, fs.ErrNotExist) {
		return Listing{}, nil
	}
	if err != nil {
		return Listing{}, err
	}
	defer p.root.Close()
	known, err := s.labels(ctx, p.dir)
	if err != nil {
		return Listing{}, err
	}
	return p.list(ctx, known)
}

// list lists what is at p, with the stored labels known.
func (p spot) list(ctx context.Context, known map[string]label) (l Listing, err error) {
	add := func(rel string, info fs.FileInfo) error {
		switch name := info.Name(); {
		case strings.HasPrefix(name, "."):
			if info.IsDir() {
				return fs.SkipDir
			}
		case !readable(name):
			l.Skipped++
			if info.IsDir() {
				return fs.SkipDir
			}
		case !info.IsDir():
			l.Entries = append(l.Entries, p.entry(rel, info, known))
		}
		return nil
	}
	info, err := p.root.Stat(p.rest)
	if err == nil && !info.IsDir() {
		return Listing{Entries: []Entry{p.entry(p.rest, info, known)}}, nil
	}
	if err == nil {
		err = walk(ctx, p.root, p.rest, add)
	}
	if errors.Is(err, errEntries) {
		l.Cut, err = true, nil
	}
	slices.SortFunc(l.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return l, p.explain(err)
}

func (p spot) entry(rel string, info fs.FileInfo, known map[string]label) Entry {
	e := Entry{Path: path.Join(p.top, rel), Size: info.Size(), Integrity: known[rel].integrity}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind = "link"
	case !info.Mode().IsRegular():
		e.Kind = "no regular file"
	}
	return e
}

var errEntries = errors.New("too many files")

// walk calls do for everything below dir, without following links. It ends with errEntries after
// maxEntries, or deeper than maxDepth. do returns fs.SkipDir to skip a folder.
func walk(ctx context.Context, root *os.Root, dir string, do func(rel string, info fs.FileInfo) error) error {
	n := 0
	for todo := []string{dir}; len(todo) > 0; todo = todo[1:] {
		if strings.Count(todo[0], "/") > maxDepth {
			return errEntries
		}
		d, err := root.OpenFile(todo[0], os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && todo[0] != dir { // gone meanwhile
				continue
			}
			return err
		}
		for err == nil {
			var some []fs.DirEntry
			some, err = d.ReadDir(256)
			for _, e := range some {
				rel := path.Join(todo[0], e.Name())
				info, failed := root.Lstat(rel)
				if failed != nil {
					continue // gone meanwhile
				}
				if n++; n > maxEntries {
					err = errEntries
					break
				}
				done := do(rel, info)
				if info.IsDir() && done == nil {
					todo = append(todo, rel)
				}
				if done != nil && !errors.Is(done, fs.SkipDir) {
					err = done
					break
				}
			}
		}
		d.Close()
		if !errors.Is(err, io.EOF) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Hit is a line that was found.
type Hit struct {
	Path string
	Line int // from 1
	Text string
}

// Found is the result of a search.
type Found struct {
	Hits      []Hit
	Files     int             // that were searched
	Cut       bool            // there are more hits or files
	Integrity trust.Integrity // of the hits
}

// Find returns the lines for which match is true, at most most, in the files that List lists and whose
// name fits the pattern files (path.Match; "" = all). Files that are no text are skipped.
func (s *Store) Find(ctx context.Context, at trust.Place, asked, files string, match func(line string) bool, most int) (Found, error) {
	found := Found{Integrity: trust.Owner}
	top, err := s.find(at, asked, false)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	defer top.root.Close()
	known, err := s.labels(ctx, top.dir)
	if err != nil {
		return found, err
	}
	l, err := top.list(ctx, known)
	if found.Cut = l.Cut; err != nil {
		return found, err
	}
	for _, e := range l.Entries {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		if fits, err := path.Match(files, path.Base(e.Path)); files != "" && (err != nil || !fits) || e.Size > MaxText {
			continue
		}
		p := top
		_, p.rest, _ = strings.Cut(e.Path, "/")
		data, err := p.read()
		if err != nil {
			continue // no text, or gone
		}
		found.Files++
		n := 0
		for line := range strings.Lines(string(data)) {
			if n++; !match(strings.TrimRight(line, "\r\n")) {
				continue
			}
			if len(found.Hits) >= most {
				found.Cut = true
				return found, nil
			}
			found.Hits = append(found.Hits, Hit{e.Path, n, strings.TrimSpace(line)})
			found.Integrity = min(found.Integrity, known[p.rest].of(data))
		}
	}
	return found, nil
}
