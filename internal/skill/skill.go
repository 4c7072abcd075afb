// Package skill keeps the library of skill files: know-how in Markdown, whose
// first line says when to use it.
//
// The folder in which a skill lies says who may read it. Nothing in the file changes that:
//
//	data/skills/NAME.md                everybody; written by hand, or shared by an owner
//	data/skills/users/PERSON/NAME.md   one person, in direct chats
//	data/skills/rooms/ROOM/NAME.md     the members of a room
//
// PERSON and ROOM are Matrix ids as file names (store.FileName). Each NAME.md may be a folder
// NAME with a SKILL.md instead. The model writes into the folder of the place where it answers,
// and changes there only what the same person had written.
//
// Two keys of the front matter say whose words a skill is made of: "integrity" (owner, user,
// guest or foreign) and "written_by" (a Matrix id). The program writes both into all that the
// model has it store, in front of the model's text, which therefore cannot hold front matter.
// A file without these keys was written by hand and has the integrity of an owner. Keys that
// cannot be read, occur twice or stand outside of front matter make it foreign.
package skill

import (
	"cmp"
	"errors"
	"io"
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
	"reverie/internal/trust"
)

// Skill is one file of the library. Its text is read by its Path when needed, or
// with Body. Skills are equal when what is in them is: they may be compared.
type Skill struct {
	Name     string // as the file is called, without ".md"
	Summary  string // the description in its front matter, or else its first line, without leading "#"
	Path     string // "data/skills/NAME.md", "data/skills/users/PERSON/NAME.md" and the like
	Priority int    // among skills that match; 1 is the highest, 10 the lowest
	Turns    int    // how many turns it stays active after a match; 1 to 50
	Label    trust.Label
	Owner    string // who had it written, by Matrix id; "" = it was written by hand

	triggers string // a line each
	folded   string // the same as Match compares them
}

// Equal reports whether s and t are the same in every respect.
func (s Skill) Equal(t Skill) bool { return s == t }

func newSkill(name, rel string, h head) Skill {
	triggers := strings.Join(h.triggers, "\n")
	folded := make([]string, len(h.triggers))
	for i, t := range h.triggers {
		folded[i] = fold(t)
	}
	return Skill{Name: name, Summary: h.summary, Path: pathPrefix + rel, Priority: h.priority, Turns: h.turns,
		Label: trust.Label{Integrity: h.integrity, Readers: Readers(rel)}, Owner: h.owner,
		triggers: triggers, folded: strings.Join(folded, "\n")}
}

// Problem is something that a person should mend in the folder of skills.
type Problem struct {
	File string // such as "data/skills/NAME.md"
	Line int    // from 1; 0 = the whole file
	Text string
}

const (
	pathPrefix = "data/skills/"
	folderFile = "SKILL.md" // what makes a folder a skill

	maxSummary = 300      // characters of a summary
	maxText    = 1 << 18  // bytes of a skill that Add takes
	headSize   = 16 << 10 // bytes in which front matter and summary must stand
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Library is the folder of skills. It is safe for concurrent use, also beside
// people who edit the files.
type Library struct {
	// Log hears about files that are no skills, and about faults in front
	// matter, once each; nil means nobody.
	// Set it before the first use.
	Log *slog.Logger

	dir string
	now func() time.Time // the clock that file times are compared with

	mu       sync.Mutex
	listings map[string]*listing // by path of the folder; "" = dir
	files    []*file             // by name, then folder
	skills   []Skill             // never changed once made
	odd      []Problem           // entries of the folder that are no skills
	texts    map[string]text
	reported map[Problem]bool
}

// file is one file that is or may become a skill.
type file struct {
	name    string // of the skill
	folder  string // in which it lies: "", or such as "users/PERSON"
	rel     string // below the folder of skills, with forward slashes
	stamp   store.Stamp
	settled bool
	ok      bool
	skill   Skill
	faults  []Problem
}

// Open returns the library in dir, which need not exist yet.
func Open(dir string) *Library {
	return &Library{dir: dir, now: time.Now, listings: map[string]*listing{}, texts: map[string]text{}, reported: map[Problem]bool{}}
}

// List returns the skills that may be shown at a place, as All does.
func (l *Library) List(at trust.Place) ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visible(at)
}

// visible is List without the lock.
func (l *Library) visible(at trust.Place) ([]Skill, error) {
	if err := l.refresh(); err != nil {
		return nil, err
	}
	hidden := func(s Skill) bool { return !at.MayRead(s.Label.Readers) }
	if !slices.ContainsFunc(l.skills, hidden) {
		return l.skills, nil
	}
	return slices.DeleteFunc(slices.Clone(l.skills), hidden), nil
}

// All returns the skills of all people and rooms, sorted by name. It is for the program's own
// work: what is shown to somebody comes from List. Edits show at once: every file is
// looked at each time, but only read when it changed. As long as nothing
// changed it is the same slice, which must not be changed. Files whose names are
// not those of skills are left out.
func (l *Library) All() ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return nil, err
	}
	return l.skills, nil
}

// Problems lists what is wrong in the folder, sorted by file and line: names that
// are not those of skills, files that cannot be read, faults in front matter. It
// looks at the files as All does.
func (l *Library) Problems() []Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return []Problem{{File: strings.TrimSuffix(pathPrefix, "/"), Text: err.Error()}}
	}
	all := slices.Clone(l.odd)
	for _, f := range l.files {
		all = append(all, f.faults...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// refresh looks at the folder and its files.
func (l *Library) refresh() error {
	changed, err := l.refreshFolders()
	if err != nil {
		return err
	}
	heads := headReader{dir: l.dir}
	defer heads.close()
	for _, f := range l.files {
		changed = l.refreshFile(f, &heads) || changed
	}
	if changed || l.skills == nil {
		l.skills = make([]Skill, 0, len(l.files))
		for i, f := range l.files {
			if f.ok && !(i > 0 && l.files[i-1].ok && l.files[i-1].name == f.name && l.files[i-1].folder == f.folder) { // NAME.md goes before NAME/SKILL.md
				l.skills = append(l.skills, f.skill)
			}
		}
	}
	return nil
}

func (l *Library) leftOut(rel, why string) Problem {
	p := Problem{File: pathPrefix + rel, Text: why}
	l.report(p, "skill file is left out")
	return p
}

// report logs a problem once.
func (l *Library) report(p Problem, text string) {
	if l.reported[p] {
		return
	}
	l.reported[p] = true
	if l.Log != nil {
		l.Log.Warn(text, "file", p.File, "line", p.Line, "why", p.Text)
	}
}

// refreshFile reads the beginning again if the file changed. A file that cannot
// be read is left out and does not keep the others from being listed.
func (l *Library) refreshFile(f *file, heads *headReader) (changed bool) {
	stamp, err := store.Stat(filepath.Join(l.dir, filepath.FromSlash(f.rel)))
	if err == nil && stamp == f.stamp && (f.settled || !stamp.Exists()) {
		return false
	}
	was := *f
	now := l.now()
	f.ok, f.skill, f.faults = false, Skill{}, nil
	switch {
	case err == nil && !stamp.Exists(): // a folder that is no skill, or just removed
	case err == nil && !stamp.Regular():
		f.faults = []Problem{l.leftOut(f.rel, "it is not a regular file")}
	default:
		var head []byte
		if err == nil {
			head, err = heads.read(f.rel)
		}
		if err != nil {
			f.faults = []Problem{l.leftOut(f.rel, err.Error())}
			break
		}
		h := readHead(head)
		f.ok, f.skill = true, newSkill(f.name, f.rel, h)
		for _, fault := range h.faults {
			p := Problem{pathPrefix + f.rel, fault.line, fault.text}
			f.faults = append(f.faults, p)
			l.report(p, "skill file has a fault")
		}
	}
	f.stamp, f.settled = stamp, err == nil && stamp.Settled(now)
	return f.ok != was.ok || f.skill != was.skill
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
