package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/text/cases"

	"reverie/internal/lazyregexp"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Skill describes one skill file. Its text is read by Path or with Body. Skills are comparable with ==.
type Skill struct {
	Name     string // file name without ".md"
	Summary  string // description in the front matter, or the first line without leading "#"
	Path     string // "data/skills/NAME.md", "data/skills/users/PERSON/NAME.md" and the like
	Priority int    // among matching skills; 1 is the highest, 10 the lowest
	Turns    int    // turns that it stays active after a match; 1 to 50
	Label    trust.Label
	Owner    string // Matrix ID of the person who had it written; "" = by hand

	Unreviewed bool // from outside, and no owner has read it as it is now
	Always     bool // its text is in every prompt, by the configuration

	imported bool   // from outside
	triggers string // one per line, folded for Match
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
	folderFile = "SKILL.md" // makes a folder a skill

	maxSummary = 300      // characters of a summary
	maxText    = 1 << 18  // bytes that Add accepts
	headSize   = 16 << 10 // bytes searched for front matter and summary
)

// IsName reports whether name may be that of a skill. Published ones have narrower names, see checkName.
func IsName(name string) bool { return namePattern().MatchString(name) }

var namePattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Library is the folder of skills. It is safe for concurrent use, also while people edit the files.
type Library struct {
	dir    string
	log    *slog.Logger
	always []string

	mu       sync.Mutex
	reported map[store.Problem]bool
	kept     map[string]kept // by path below dir
}

// kept is what a file says, while its stamp proves that it is unchanged.
type kept struct {
	stamp  store.Stamp
	skill  Skill
	faults []store.Problem
}

// Open returns the library in dir, which need not exist yet. Each invalid file and each fault in
// front matter is logged once to log; nil = silent. always names shared skills whose text is in every
// prompt.
func Open(dir string, log *slog.Logger, always ...string) *Library {
	return &Library{dir: dir, log: log, always: always, reported: map[store.Problem]bool{}, kept: map[string]kept{}}
}

// List returns the skills that may be read at a place, sorted by name.
func (l *Library) List(at trust.Place) ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visible(at)
}

// visible is List without locking.
func (l *Library) visible(at trust.Place) ([]Skill, error) {
	skills, _, err := l.scan()
	return slices.DeleteFunc(skills, func(s Skill) bool { return !at.MayRead(s.Label.Readers) }), err
}

// All returns the skills of all people and rooms, sorted by name. It is for internal work; use List
// for what people see. Edits show at once. Files with invalid names are left out.
func (l *Library) All() ([]Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	skills, _, err := l.scan()
	return skills, err
}

// Problems lists the faults in the folder, by file and line: invalid names, unreadable files and
// faulty front matter.
func (l *Library) Problems() []store.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	skills, all, err := l.scan()
	if err != nil {
		return []store.Problem{{File: strings.TrimSuffix(pathPrefix, "/"), Text: err.Error()}}
	}
	for _, name := range l.always {
		if !slices.ContainsFunc(skills, func(s Skill) bool { return s.Always && s.Name == name }) {
			all = append(all, store.Problem{Text: "the configuration names the skill " + name +
				", but data/skills has no such skill that an owner wrote or reviewed"})
		}
	}
	slices.SortStableFunc(all, func(a, b store.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// scan reads all skills, sorted by name, and the faults in the folder.
func (l *Library) scan() (skills []Skill, problems []store.Problem, err error) {
	found, problems, err := l.candidates()
	if err != nil {
		return nil, nil, fmt.Errorf("skills: %w", err)
	}
	if len(l.kept) > len(found) { // some files are gone
		clear(l.kept)
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
		s, ok, faults := l.loadSkill(root, c)
		problems = append(problems, faults...)
		if n := len(skills); ok && (n == 0 || skills[n-1].ID() != s.ID()) { // NAME.md goes before NAME/SKILL.md
			skills = append(skills, s)
		}
	}
	return skills, problems, nil
}

// reportSkipped returns and logs the problem of an invalid file.
func (l *Library) reportSkipped(rel, why string) store.Problem {
	return l.report(store.Problem{File: pathPrefix + rel, Text: why}, "skill file skipped")
}

// report logs a problem once.
func (l *Library) report(p store.Problem, text string) store.Problem {
	if l.log != nil && !l.reported[p] {
		l.log.Warn(text, "file", p.File, "line", p.Line, "why", p.Text)
	}
	l.reported[p] = true
	return p
}

// loadSkill returns the skill of a candidate. An unreadable file is skipped and reported. Whether an
// owner has read a folder from outside is checked each time.
func (l *Library) loadSkill(root *os.Root, c candidate) (s Skill, ok bool, faults []store.Problem) {
	k, err := l.readSkill(root, c)
	if errors.Is(err, fs.ErrNotExist) { // a folder without SKILL.md, or just removed
		return Skill{}, false, nil
	}
	if err != nil {
		return Skill{}, false, []store.Problem{l.reportSkipped(c.rel, err.Error())}
	}
	s = k.skill
	if folder, ok := strings.CutSuffix(c.rel, "/"+folderFile); ok {
		var reviewed bool
		if s.imported, reviewed = readMark(root, folder); s.imported && !reviewed {
			s.Unreviewed, s.Label.Integrity, s.Owner, s.triggers = true, trust.Foreign, "", ""
		}
	}
	s.Always = s.Label.Readers == trust.Everybody && !s.Unreviewed && slices.Contains(l.always, s.Name)
	return s, true, k.faults
}

// readSkill reads the file of a candidate, unless it is unchanged.
func (l *Library) readSkill(root *os.Root, c candidate) (kept, error) {
	stamp, _ := store.Stat(filepath.Join(l.dir, c.rel)) // after an error it is no kept one, so the file is read
	now := time.Now()
	if k, ok := l.kept[c.rel]; ok && k.stamp == stamp {
		return k, nil
	}
	delete(l.kept, c.rel)
	text, err := readIn(root, c.rel, headSize)
	if err != nil {
		return kept{}, err
	}
	h := readHead(text)
	k := kept{stamp: stamp, skill: newSkill(c.name, c.rel, h)}
	for _, p := range h.faults {
		p.File = pathPrefix + c.rel
		k.faults = append(k.faults, l.report(p, "skill file has a fault"))
	}
	if stamp.Regular() && stamp.Conclusive(now) {
		l.kept[c.rel] = k
	}
	return k, nil
}

// readFile reads at most most bytes of a file.
func (l *Library) readFile(rel string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readIn(root, rel, most)
}

// readIn reads at most most bytes of a file below root. Links out of the folder are errors, because
// the name may come from a model.
func readIn(root *os.Root, rel string, most int64) ([]byte, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("it is not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// oneLine replaces control characters and runs of blanks in text by single spaces.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

const maxBody = 64 << 10 // bytes

// Body returns the text of the skill id without its front matter. A text over 64 KiB is cut, with a
// note. A missing skill is an error that wraps fs.ErrNotExist.
func (l *Library) Body(id string) (string, error) {
	files := skillFiles(id)
	if files == nil {
		return "", fmt.Errorf("skill %q: that is no name of a skill: %w", id, fs.ErrNotExist)
	}
	for _, rel := range files {
		raw, err := l.readFile(rel, headSize+maxBody+1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("skill %s: %w", id, err)
		}
		_, body := splitValidFront(raw)
		note := fmt.Sprintf("\n[The skill is longer than %d KiB. The rest stands in %s%s.]", maxBody>>10, pathPrefix, rel)
		return cutBody(text.Clean(string(body)), len(raw) > headSize+maxBody, note), nil
	}
	return "", fmt.Errorf("skill %s: its file %s%s.md is not there: %w", id, pathPrefix, id, fs.ErrNotExist)
}

// cutBody cuts a text that is too long or has more unread. It cuts after a line and adds note.
func cutBody(s string, more bool, note string) string {
	if len(s) <= maxBody && !more {
		return s
	}
	s = strings.ToValidUTF8(s[:min(len(s), maxBody-len(note))], "")
	if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
		s = s[:i]
	}
	return s + note
}

// Match returns the skills with a trigger that occurs in what was said, ignoring case. They are sorted by
// priority and name, at most most. A trigger must be a whole word, except in scripts without blanks
// between words.
func Match(skills []Skill, said string, most int) []Skill {
	said = fold(said)
	var found []Skill
	for _, s := range skills {
		occurs := func(trigger string) bool { return text.WholeWords(said, trigger) }
		if s.triggers != "" && slices.ContainsFunc(strings.Split(s.triggers, "\n"), occurs) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return found[:min(len(found), most)]
}

// Finder returns a function that reports whether one of phrases occurs in what was said. The rules of Match apply.
func Finder(phrases []string) func(said string) bool {
	folded := store.Map(phrases, fold)
	return func(said string) bool {
		said = fold(said)
		return slices.ContainsFunc(folded, func(p string) bool { return text.WholeWords(said, p) })
	}
}

// fold normalises case and blanks for comparing.
func fold(text string) string {
	return cases.Fold().String(strings.Join(strings.Fields(text), " "))
}
