package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reverie/internal/store"
)

// Shorten gives the skill name a shorter summary, in the description of its front
// matter; everything else in its file stays as it is. kept is where its earlier
// version lies, such as "data/skills/.NAME.md.1": put back in its place, it counts
// again. The errors say what to change about the arguments.
func (l *Library) Shorten(name, summary string) (s Skill, kept string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rel, old, text, err := l.shortened(name, summary)
	if err != nil {
		return Skill{}, "", err
	}
	path := filepath.Join(l.dir, filepath.FromSlash(rel))
	version, err := keep(path, old)
	if err == nil {
		err = store.WriteFile(path, text)
	}
	if err != nil {
		return Skill{}, "", fmt.Errorf("skill %s: %w", name, err)
	}
	return newSkill(name, rel, readHead(text)), l.shown(version), nil
}

// shortened is where the skill name lies, its text, and that with the shorter summary.
func (l *Library) shortened(name, summary string) (rel string, old, text []byte, err error) {
	summary = strings.TrimLeft(tidy(summary), "# ")
	if summary == "" || summary == fence {
		return "", nil, nil, errors.New("summary is missing: say in one line what the skill is for")
	}
	if rel, old, err = l.find(name); err != nil {
		return "", nil, nil, err
	}
	if was, now := utf8.RuneCountInString(readHead(old).summary), utf8.RuneCountInString(summary); now >= was {
		return "", nil, nil, fmt.Errorf("the summary of %s has %d characters, and this one %d: say it in fewer", name, was, now)
	}
	text = slices.Concat(described(old), []byte("description: "+strconv.Quote(summary)+"\n"+fence+"\n"), bodyOf(old))
	was, now := readHead(old), readHead(text)
	if now.summary != summary || len(now.faults) > len(was.faults) {
		return "", nil, nil, fmt.Errorf("the front matter of %s cannot be changed by a program: leave this skill as it is", name)
	}
	return rel, old, text, nil
}

// longestMerged is how many characters a skill may have that another one becomes a
// part of: more is not read in one piece.
const longestMerged = 15_000

// Merge makes the skill name a section at the end of the skill into, and takes it
// out of the table of contents. Nothing of either is lost: kept is where the file
// of name lies now, and the earlier version of into is kept beside it. A skill
// with triggers, and one that is a folder, stays by itself.
func (l *Library) Merge(name, into string) (s Skill, kept string, err error) {
	if name == into {
		return Skill{}, "", fmt.Errorf("%s cannot become a part of itself: name another skill", name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	from, part, err := l.find(name)
	if err != nil {
		return Skill{}, "", err
	}
	rel, old, err := l.find(into)
	if err != nil {
		return Skill{}, "", err
	}
	h := readHead(part)
	switch {
	case len(h.triggers) > 0:
		return Skill{}, "", fmt.Errorf("%s has triggers of its own: leave it as it is", name)
	case from != name+".md":
		return Skill{}, "", fmt.Errorf("%s is a folder, in which there may be more: leave it as it is", name)
	}
	section := "\n\n## " + name + ": " + h.summary + "\n\n" + strings.Trim(textOf(part), "\r\n") + "\n"
	text := old
	if !bytes.Contains(old, []byte(section)) { // it was cut off before the end, the last time
		text = append(bytes.TrimRight(bytes.Clone(old), "\r\n"), section...)
	}
	if n := utf8.RuneCount(text); n > longestMerged {
		return Skill{}, "", fmt.Errorf("%s would have %d characters, and %d can be read in one piece: choose another skill", into, n, longestMerged)
	}
	path := filepath.Join(l.dir, filepath.FromSlash(rel))
	if !bytes.Equal(text, old) {
		if _, err = keep(path, old); err == nil {
			err = store.WriteFile(path, text)
		}
		if err != nil {
			return Skill{}, "", fmt.Errorf("skill %s: %w", into, err)
		}
	}
	version, err := l.putAway(from)
	if err != nil {
		return Skill{}, "", fmt.Errorf("skill %s: %w", name, err)
	}
	return newSkill(into, rel, readHead(text)), l.shown(version), nil
}

// find reads the file of the skill name.
func (l *Library) find(name string) (rel string, text []byte, err error) {
	if nameForm.MatchString(name) {
		for _, rel := range []string{name + ".md", name + "/" + folderFile} {
			text, err := l.read(rel)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil && len(text) > maxText {
				err = fmt.Errorf("it is longer than %d KiB: leave it as it is", maxText>>10)
			}
			if err != nil {
				return "", nil, fmt.Errorf("skill %s: %w", name, err)
			}
			return rel, text, nil
		}
	}
	return "", nil, fmt.Errorf("there is no skill %q: send a name from the list", name)
}

// putAway makes the file rel the next earlier version of itself.
func (l *Library) putAway(rel string) (version string, err error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if version, err = reserve(filepath.Join(l.dir, rel)); err != nil {
		return "", err
	}
	return version, root.Rename(rel, filepath.Base(version)) // over the empty file that we made
}

// shown is a path in the folder as people read it.
func (l *Library) shown(path string) string {
	rel, err := filepath.Rel(l.dir, path)
	if err != nil {
		return filepath.Base(path)
	}
	return pathPrefix + filepath.ToSlash(rel)
}

// described is the front matter of a skill up to where its description comes; the
// closing "---" is not part of it.
func described(old []byte) []byte {
	if front := keptFront(old); front != nil && isFront(old) {
		return bytes.TrimSuffix(front, []byte(fence+"\n"))
	}
	return []byte(fence + "\n")
}

// bodyOf is what comes after the front matter, byte for byte.
func bodyOf(old []byte) []byte {
	if _, body, _, closed := cutFront(old); closed && isFront(old) {
		return body
	}
	return bytes.TrimPrefix(old, byteOrderMark)
}

// isFront reports whether a skill begins with front matter, and not with a rule.
func isFront(old []byte) bool {
	front, _, line, closed := cutFront(old)
	var h head
	return closed && h.readFront(front, line)
}
