package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"reverie/internal/store"
)

// Add writes the skill name: summary as its first line, then documentation, and
// returns once it is safely on disk. A skill that is there already is replaced,
// and its earlier version kept beside it as .NAME.md.1, .2 and so on. The errors
// say what to change about the arguments.
func (l *Library) Add(name, summary, documentation string) (s Skill, replaced bool, err error) {
	name = strings.TrimSpace(name)
	if !nameForm.MatchString(name) {
		return Skill{}, false, fmt.Errorf(`the skill name %q is not allowed: use 1 to 64 letters, digits, "-" and "_", beginning with a letter or digit, for example "water-plants"`, name)
	}
	if !utf8.ValidString(summary) || !utf8.ValidString(documentation) {
		return Skill{}, false, errors.New("the skill is not valid UTF-8 text: send plain text")
	}
	summary = strings.TrimLeft(tidy(summary), "# ")
	if summary == "" || summary == "---" {
		return Skill{}, false, errors.New(`summary is missing: say in one line what the skill is for, for example "How to water the plants"`)
	}
	if n := utf8.RuneCountInString(summary); n > maxSummary {
		return Skill{}, false, fmt.Errorf("summary is %d characters long and at most %d are allowed: put the rest into documentation", n, maxSummary)
	}
	documentation = strings.Trim(strings.ReplaceAll(documentation, "\r\n", "\n"), "\n")
	if strings.TrimSpace(documentation) == "" {
		return Skill{}, false, errors.New("documentation is missing: write down, step by step, what there is to know")
	}
	if strings.ContainsRune(documentation, 0) {
		return Skill{}, false, errors.New("documentation holds a zero byte: leave it out")
	}
	text := []byte(summary + "\n\n" + documentation + "\n")
	if len(text) > maxText {
		return Skill{}, false, fmt.Errorf("the skill is %d KiB long and at most %d are allowed: split it into several skills", len(text)>>10, maxText>>10)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rel, text, replaced, err := l.put(name, text)
	if err != nil {
		return Skill{}, false, fmt.Errorf("skill %s: %w", name, err)
	}
	return newSkill(name, rel, readHead(text)), replaced, nil
}

// put writes the file of the skill, where it is or as NAME.md, and returns what
// stands in it now: the front matter it had is kept.
func (l *Library) put(name string, text []byte) (rel string, now []byte, replaced bool, err error) {
	for _, rel := range []string{name + ".md", name + "/" + folderFile} {
		path := filepath.Join(l.dir, filepath.FromSlash(rel))
		old, err := l.read(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, false, err
		}
		// What was no front matter, or would hide the new summary, goes; the
		// earlier version has it.
		if with := append(keptFront(old), text...); readHead(with).summary == readHead(text).summary {
			text = with
		}
		if bytes.Equal(old, text) {
			return rel, text, true, nil // as it is already: no version to keep
		}
		if _, err := keep(path, old); err != nil {
			return "", nil, false, err
		}
		return rel, text, true, store.WriteFile(path, text)
	}
	rel = name + ".md"
	return rel, text, false, store.WriteFile(filepath.Join(l.dir, rel), text)
}

// keptFront is the front matter of a skill for its next version: all but the
// description, in whose place the new summary comes.
func keptFront(old []byte) []byte {
	front, _, _, closed := cutFront(old)
	if !closed {
		return nil
	}
	out := []byte(fence + "\n")
	skip := false
	for l := range bytes.Lines(front) {
		if goesOn := len(bytes.TrimSpace(l)) == 0 || l[0] == ' ' || l[0] == '\t'; !goesOn {
			skip = bytes.HasPrefix(l, []byte("description:"))
		}
		if !skip {
			out = append(out, l...)
		}
	}
	if len(out) == len(fence)+1 {
		return nil
	}
	return append(out, fence+"\n"...)
}

// read reads a file that lies in the folder for certain: the name comes from a
// model, and no link may carry what it writes elsewhere.
func (l *Library) read(rel string) ([]byte, error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(filepath.FromSlash(rel))
}

// keep stores old as the next earlier version of the file at path.
func keep(path string, old []byte) (version string, err error) {
	if version, err = reserve(path); err != nil {
		return "", err
	}
	return version, store.WriteFile(version, old) // the name is ours now
}

// reserve makes an empty file that is to be the next earlier version of path.
func reserve(path string) (version string, err error) {
	for n := 1; ; n++ {
		version := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), n))
		f, err := os.OpenFile(version, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // never over another version
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return "", fmt.Errorf("keep the earlier version: %w", err)
		}
		return version, nil
	}
}
