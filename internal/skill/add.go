package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// MaxPerFolder is the maximum number of skills of one person or room.
const MaxPerFolder = 30

// Add writes a skill into the folder of the place's readers. summary is its first line. A skill of
// the same person is replaced and kept beside it as .NAME.md.1, .2 and so on; a skill of others is
// an error. Errors tell the model how to change the arguments.
func (l *Library) Add(at trust.Place, integrity trust.Integrity, name, summary, documentation string) (s Skill, replaced bool, err error) {
	name, body, err := checkArguments(name, summary, documentation)
	if err != nil {
		return Skill{}, false, err
	}
	folder := Folder(at.Readers())
	if folder == "" || at.Person == "" {
		return Skill{}, false, errors.New("no skill can be kept for this room or person: its Matrix id is missing or too long")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	visible, err := l.visible(at)
	if err != nil {
		return Skill{}, false, err
	}
	old, err := findReplaceable(visible, at, name)
	if err != nil {
		return Skill{}, false, err
	}
	rel := folder + "/" + name + ".md"
	if old != nil {
		rel = strings.TrimPrefix(old.Path, pathPrefix)
	}
	text, err := l.writeSkill(rel, old != nil, at.Person, integrity, body)
	return newSkill(name, rel, readHead(text)), old != nil, store.Wrap(err, "skill %s", name)
}

// checkArguments validates the arguments of Add. It returns the name and the text of the file.
func checkArguments(name, summary, documentation string) (string, []byte, error) {
	name = strings.TrimSpace(name)
	if !namePattern().MatchString(name) {
		return "", nil, fmt.Errorf(`the skill name %q is not allowed: use 1 to 64 letters, digits, "-" and "_", `+
			`beginning with a letter or digit, for example "water-plants"`, name)
	}
	summary = strings.TrimLeft(oneLine(summary), "# ")
	if summary == "" || summary == fence {
		return "", nil, errors.New(`summary is missing: say in one line what the skill is for, for example "How to water the plants"`)
	}
	if n := utf8.RuneCountInString(summary); n > maxSummary {
		return "", nil, fmt.Errorf("summary is %d characters long and at most %d are allowed: put the rest into documentation",
			n, maxSummary)
	}
	documentation = strings.Trim(strings.ReplaceAll(documentation, "\r\n", "\n"), "\n")
	if strings.TrimSpace(documentation) == "" {
		return "", nil, errors.New("documentation is missing: write down, step by step, what there is to know")
	}
	text := []byte(summary + "\n\n" + documentation + "\n")
	if len(text) > maxText {
		return "", nil, fmt.Errorf("the skill is %d KiB long and at most %d are allowed: split it into several skills",
			len(text)>>10, maxText>>10)
	}
	return name, text, nil
}

// findReplaceable returns the skill name that the person at a place may replace, or nil. It is an
// error if others own the name or there are too many skills.
func findReplaceable(visible []Skill, at trust.Place, name string) (*Skill, error) {
	var taken *Skill
	ownCount := 0
	for i, s := range visible {
		if s.Label.Readers == at.Readers() {
			ownCount++
		}
		switch {
		case s.Name == name && s.OwnedAt(at):
			return &visible[i], nil
		case strings.EqualFold(s.Name, name):
			taken = &visible[i]
		}
	}
	switch {
	case taken != nil && taken.OwnedAt(at):
		return nil, fmt.Errorf("there is a skill %s already: send its name in the same letters to replace it, or choose another name",
			taken.Name)
	case taken != nil:
		return nil, fmt.Errorf("there is a skill %s already, which is not this person's to replace: choose another name", taken.Name)
	case ownCount >= MaxPerFolder:
		return nil, fmt.Errorf("%d skills are kept here already, which is the most: "+
			"replace one of them by sending its name, or tell the person that there is no room", ownCount)
	}
	return nil, nil
}

// writeSkill writes the file rel and returns its content. Existing front matter is kept.
func (l *Library) writeSkill(rel string, replace bool, owner string, integrity trust.Integrity, body []byte) ([]byte, error) {
	file := filepath.Join(l.dir, rel)
	text := composeFile(integrity, owner, nil, body)
	old, err := l.readFile(rel, math.MaxInt64)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return text, store.WriteFile(file, text)
	case err != nil:
		return nil, err
	case !replace:
		return nil, fmt.Errorf("there is something at %s%s already: choose another name", pathPrefix, rel)
	}
	// Drop front matter that would hide the new summary or label; the earlier version keeps it.
	withFront := composeFile(integrity, owner, frontLinesWithout(old, append(labelKeys, "description")...), body)
	if h := readHead(withFront); h.summary == readHead(text).summary && h.integrity == integrity && h.owner == owner {
		text = withFront
	}
	if bytes.Equal(old, text) {
		return text, nil // unchanged: keep no version
	}
	if err := saveVersion(file, old); err != nil {
		return nil, err
	}
	return text, store.WriteFile(file, text)
}

// frontLinesWithout returns the lines of front matter without those of some keys.
func frontLinesWithout(old []byte, without ...string) (out []byte) {
	front, _ := splitValidFront(old)
	skip := false
	for l := range bytes.Lines(front) {
		if continued := len(bytes.TrimSpace(l)) == 0 || l[0] == ' ' || l[0] == '\t'; !continued {
			skip = slices.ContainsFunc(without, func(key string) bool { return bytes.HasPrefix(l, []byte(key+":")) })
		}
		if !skip {
			out = append(out, l...)
		}
	}
	return out
}

// saveVersion stores old as the next earlier version of the file at path. It never overwrites.
func saveVersion(path string, old []byte) error {
	for n := 1; ; n++ {
		version := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), n))
		f, err := os.OpenFile(version, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return fmt.Errorf("keep the earlier version: %w", err)
		}
		return store.WriteFile(version, old) // the name is reserved now
	}
}
