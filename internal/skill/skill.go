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
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Skill is one file of the library. Its text is read by its Path when needed, or
// with Body. Skills are equal when what is in them is.
type Skill struct {
	Name     string // as the file is called, without ".md"
	Summary  string // the description in its front matter, or else its first line, without leading "#"
	Path     string // "data/skills/NAME.md", "data/skills/users/PERSON/NAME.md" and the like
	Priority int    // among skills that match; 1 is the highest, 10 the lowest
	Turns    int    // how many turns it stays active after a match; 1 to 50
	Label    trust.Label
	Owner    string // who had it written, by Matrix id; "" = it was written by hand

	triggers string // a line each, as Match compares them
}

func newSkill(name, rel string, h head) Skill {
	triggers := make([]string, len(h.triggers))
	for i, t := range h.triggers {
		triggers[i] = fold(t)
	}
	return Skill{Name: name, Summary: h.summary, Path: pathPrefix + rel, Priority: h.priority, Turns: h.turns,
		Label: trust.Label{Integrity: h.integrity, Readers: Readers(rel)}, Owner: h.owner, triggers: strings.Join(triggers, "\n")}
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
	dir string
	log *slog.Logger

	mu       sync.Mutex
	reported map[store.Problem]bool
}

// Open returns the library in dir, which need not exist yet. log hears once of each file that is
// no skill and each fault in front matter; nil = silent.
func Open(dir string, log *slog.Logger) *Library {
	return &Library{dir: dir, log: log, reported: map[store.Problem]bool{}}
}

// List returns the skills that may be shown at a place, as All does.
func (l *Library) List(at trust.Place) ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visible(at)
}

// visible is List without the lock.
func (l *Library) visible(at trust.Place) ([]Skill, error) {
	skills, _, err := l.look()
	return slices.DeleteFunc(skills, func(s Skill) bool { return !at.MayRead(s.Label.Readers) }), err
}

// All returns the skills of all people and rooms, sorted by name. It is for the program's own
// work: what is shown to somebody comes from List. Edits show at once: every file is
// read each time. Files whose names are not those of skills are left out.
func (l *Library) All() ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	skills, _, err := l.look()
	return skills, err
}

// Problems lists what is wrong in the folder, sorted by file and line: names that
// are not those of skills, files that cannot be read, faults in front matter. It
// looks at the files as All does.
func (l *Library) Problems() []store.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, all, err := l.look()
	if err != nil {
		return []store.Problem{{File: strings.TrimSuffix(pathPrefix, "/"), Text: err.Error()}}
	}
	slices.SortStableFunc(all, func(a, b store.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// look finds the skills, sorted by name, and what is wrong in the folder.
func (l *Library) look() (skills []Skill, problems []store.Problem, err error) {
	found, problems, err := l.candidates()
	if err != nil {
		return nil, nil, fmt.Errorf("skills: %w", err)
	}
	if len(found) == 0 {
		return nil, problems, nil
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("skills: %w", err)
	}
	defer root.Close()
	for _, c := range found {
		s, ok, faults := l.skill(root, c)
		problems = append(problems, faults...)
		if n := len(skills); ok && (n == 0 || skills[n-1].ID() != s.ID()) { // NAME.md goes before NAME/SKILL.md
			skills = append(skills, s)
		}
	}
	return skills, problems, nil
}

// leftOut is the problem of a file that is no skill.
func (l *Library) leftOut(rel, why string) store.Problem {
	return l.report(store.Problem{File: pathPrefix + rel, Text: why}, "skill file is left out")
}

// report logs a problem once.
func (l *Library) report(p store.Problem, text string) store.Problem {
	if l.log != nil && !l.reported[p] {
		l.log.Warn(text, "file", p.File, "line", p.Line, "why", p.Text)
	}
	l.reported[p] = true
	return p
}

// skill reads the file of a candidate. One that cannot be read is left out and does not keep
// the others from being listed.
func (l *Library) skill(root *os.Root, c candidate) (s Skill, ok bool, faults []store.Problem) {
	text, err := readIn(root, c.rel, headSize)
	if errors.Is(err, fs.ErrNotExist) { // a folder that is no skill, or just removed
		return Skill{}, false, nil
	}
	if err != nil {
		return Skill{}, false, []store.Problem{l.leftOut(c.rel, err.Error())}
	}
	h := readHead(text)
	for _, p := range h.faults {
		p.File = pathPrefix + c.rel
		faults = append(faults, l.report(p, "skill file has a fault"))
	}
	return newSkill(c.name, c.rel, h), true, faults
}

// read reads a file up to so many bytes.
func (l *Library) read(rel string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readIn(root, rel, most)
}

// readIn reads a file of a folder up to so many bytes. A link that leads out of the folder is an
// error: the name may come from a model, and nothing may carry what it reads or writes elsewhere.
func readIn(root *os.Root, rel string, most int64) ([]byte, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for who writes
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("it is not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, most))
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
