// Package skill keeps the library of skill files: know-how in Markdown, whose
// first line says when to use it.
package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"reverie/internal/store"
)

// Skill is one file of the library. Its text is read by its Path when needed.
type Skill struct {
	Name    string // as the file is called, without ".md"
	Summary string // its first line, without leading "#"
	Path    string // "data/skills/NAME.md", or "data/skills/NAME/SKILL.md"
}

const (
	pathPrefix = "data/skills/"
	folderFile = "SKILL.md" // what makes a folder a skill

	maxSummary = 300     // characters of a summary
	maxText    = 1 << 18 // bytes of a skill that Add takes
	headSize   = 4096    // bytes in which the summary must stand
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Library is the folder of skills. It is safe for concurrent use, also beside
// people who edit the files.
type Library struct {
	// Log hears about files that are no skills, once each; nil means nobody.
	// Set it before the first use.
	Log *slog.Logger

	dir string
	now func() time.Time // the clock that file times are compared with

	mu       sync.Mutex
	stamp    store.Stamp // of the folder
	settled  bool        // stamp alone tells whether files is complete
	files    []*file     // by name
	skills   []Skill     // never changed once made
	reported map[string]bool
}

// file is one file that is or may become a skill.
type file struct {
	name    string // of the skill
	rel     string // below the folder, with forward slashes
	full    string // with the system's own
	stamp   store.Stamp
	settled bool
	ok      bool
	summary string
}

// Open returns the library in dir, which need not exist yet.
func Open(dir string) *Library {
	return &Library{dir: dir, now: time.Now, reported: map[string]bool{}}
}

// List returns the skills, sorted by name. Edits show at once: every file is
// looked at each time, but only read when it changed. As long as nothing
// changed it is the same slice, which must not be changed. Files whose names are
// not those of skills are left out.
func (l *Library) List() ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed, err := l.refreshFolder()
	if err != nil {
		return nil, err
	}
	heads := headReader{dir: l.dir}
	defer heads.close()
	for _, f := range l.files {
		changed = l.refreshFile(f, &heads) || changed
	}
	if changed || l.skills == nil {
		l.skills = make([]Skill, 0, len(l.files))
		for i, f := range l.files {
			if f.ok && !(i > 0 && l.files[i-1].ok && l.files[i-1].name == f.name) { // NAME.md goes before NAME/SKILL.md
				l.skills = append(l.skills, Skill{Name: f.name, Summary: f.summary, Path: pathPrefix + f.rel})
			}
		}
	}
	return l.skills, nil
}

// refreshFolder reads the folder again if it changed.
func (l *Library) refreshFolder() (changed bool, err error) {
	stamp, err := store.Stat(l.dir)
	if err != nil {
		return false, fmt.Errorf("skills: %w", err)
	}
	if stamp == l.stamp && (l.settled || !stamp.Exists()) {
		return false, nil
	}
	now := l.now()
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("skills: %w", err)
	}
	old := map[string]*file{}
	for _, f := range l.files {
		old[f.rel] = f
	}
	files := make([]*file, 0, len(entries))
	for _, e := range entries {
		name, rel, ok := l.candidate(e)
		if !ok {
			continue
		}
		f := old[rel]
		if f == nil {
			f = &file{name: name, rel: rel, full: filepath.Join(l.dir, filepath.FromSlash(rel))}
		}
		files = append(files, f)
	}
	// By name; for one name the file before the folder ("." sorts before "/").
	slices.SortFunc(files, func(a, b *file) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.rel, b.rel)
	})
	changed = !slices.Equal(files, l.files)
	l.files, l.stamp, l.settled = files, stamp, stamp.Settled(now)
	return changed, nil
}

// candidate tells which skill a folder entry can be.
func (l *Library) candidate(e fs.DirEntry) (name, rel string, ok bool) {
	switch base := e.Name(); {
	case strings.HasPrefix(base, "."): // earlier versions, editors' files
		return "", "", false
	case strings.HasSuffix(base, ".md"):
		name, rel = strings.TrimSuffix(base, ".md"), base
	case e.IsDir() || e.Type()&fs.ModeSymlink != 0:
		name, rel = base, base+"/"+folderFile
	default:
		return "", "", false
	}
	if !nameForm.MatchString(name) {
		l.report(e.Name(), "its name is not that of a skill: use letters, digits, - and _ and the ending .md")
		return "", "", false
	}
	return name, rel, true
}

func (l *Library) report(file, why string) {
	if key := file + "\x00" + why; !l.reported[key] {
		l.reported[key] = true
		if l.Log != nil {
			l.Log.Warn("skill file is left out", "file", file, "why", why)
		}
	}
}

// refreshFile reads the summary again if the file changed. A file that cannot
// be read is left out and does not keep the others from being listed.
func (l *Library) refreshFile(f *file, heads *headReader) (changed bool) {
	stamp, err := store.Stat(f.full)
	if err == nil && stamp == f.stamp && (f.settled || !stamp.Exists()) {
		return false
	}
	was := *f
	now := l.now()
	f.ok, f.summary = false, ""
	switch {
	case err == nil && !stamp.Exists(): // a folder that is no skill, or just removed
	case err == nil && !stamp.Regular():
		l.report(f.rel, "it is not a regular file")
	default:
		var head []byte
		if err == nil {
			head, err = heads.read(f.rel)
		}
		if err != nil {
			l.report(f.rel, err.Error())
			break
		}
		f.ok, f.summary = true, summarize(head)
	}
	f.stamp, f.settled = stamp, err == nil && stamp.Settled(now)
	return f.ok != was.ok || f.summary != was.summary
}

// headReader reads the beginnings of files. A link that leads out of the folder
// is an error: the model could not read that skill either.
type headReader struct {
	dir  string
	root *os.Root
	buf  []byte
}

// read returns the head of a file, good until the next call.
func (h *headReader) read(rel string) ([]byte, error) {
	if h.root == nil {
		root, err := os.OpenRoot(h.dir)
		if err != nil {
			return nil, err
		}
		h.root, h.buf = root, make([]byte, headSize)
	}
	f, err := h.root.Open(filepath.FromSlash(rel))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, h.buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return h.buf[:n], nil
}

func (h *headReader) close() {
	if h.root != nil {
		_ = h.root.Close() // it was only read from
	}
}

// summarize finds what the table of contents says about a skill: the first line
// with text, or the description in front matter, where other programs keep it.
func summarize(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	front := false
	for raw := range strings.FieldsFuncSeq(string(head), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line := tidy(raw)
		switch {
		case line == "---":
			front = !front
		case front:
			if text, ok := strings.CutPrefix(line, "description:"); ok {
				return limit(strings.Trim(tidy(text), `"'`))
			}
		case strings.TrimLeft(line, "# ") != "":
			return limit(strings.TrimLeft(line, "# "))
		}
	}
	return ""
}

// tidy makes text one clean line.
func tidy(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

func limit(text string) string {
	runes := []rune(text)
	if len(runes) <= maxSummary {
		return text
	}
	return string(runes[:maxSummary-1]) + "…"
}
