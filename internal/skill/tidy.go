package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Shorten gives the skill called id a shorter summary, in the description of its front
// matter; everything else in its file stays as it is. The skill is no more trusted than the
// summary, whose integrity is given. kept is where its earlier
// version lies, such as "data/skills/.NAME.md.1": put back in its place, it counts
// again. The errors say what to change about the arguments.
func (l *Library) Shorten(id, summary string, integrity trust.Integrity) (s Skill, kept string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rel, old, text, err := l.shortened(id, summary)
	if err != nil {
		return Skill{}, "", err
	}
	if text, err = noMoreTrusted(id, text, integrity); err != nil {
		return Skill{}, "", err
	}
	file := filepath.Join(l.dir, filepath.FromSlash(rel))
	version, err := keep(file, old)
	if err == nil {
		err = store.WriteFile(file, text)
	}
	if err != nil {
		return Skill{}, "", fmt.Errorf("skill %s: %w", id, err)
	}
	return newSkill(path.Base(id), rel, readHead(text)), l.shown(version), nil
}

// shortened is where the skill called id lies, its text, and that with the shorter summary.
func (l *Library) shortened(id, summary string) (rel string, old, text []byte, err error) {
	summary = strings.TrimLeft(tidy(summary), "# ")
	if summary == "" || summary == fence {
		return "", nil, nil, errors.New("summary is missing: say in one line what the skill is for")
	}
	if rel, old, err = l.find(id); err != nil {
		return "", nil, nil, err
	}
	if was, now := utf8.RuneCountInString(readHead(old).summary), utf8.RuneCountInString(summary); now >= was {
		return "", nil, nil, fmt.Errorf("the summary of %s has %d characters, and this one %d: say it in fewer", id, was, now)
	}
	text = slices.Concat(described(old), []byte("description: "+strconv.Quote(summary)+"\n"+fence+"\n"), bodyOf(old))
	was, now := readHead(old), readHead(text)
	if now.summary != summary || now.integrity != was.integrity || now.owner != was.owner || len(now.faults) > len(was.faults) {
		return "", nil, nil, fmt.Errorf("the front matter of %s cannot be changed by a program: leave this skill as it is", id)
	}
	return rel, old, text, nil
}

// longestMerged is how many characters a skill may have that another one becomes a
// part of: more is not read in one piece.
const longestMerged = 15_000

// Merge makes the skill called id a section at the end of the skill called into, and takes it
// out of the table of contents. Both have the same readers, and into is as trusted as the less
// trusted of the two from then on. Nothing of either is lost: kept is where the file
// of id lies now, and the earlier version of into is kept beside it. A skill
// with triggers, and one that is a folder, stays by itself.
func (l *Library) Merge(id, into string) (s Skill, kept string, err error) {
	if id == into {
		return Skill{}, "", fmt.Errorf("%s cannot become a part of itself: name another skill", id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	from, part, err := l.find(id)
	if err != nil {
		return Skill{}, "", err
	}
	rel, old, err := l.find(into)
	if err != nil {
		return Skill{}, "", err
	}
	if err := mayMerge(id, from, into, rel, readHead(part)); err != nil {
		return Skill{}, "", err
	}
	text, err := merged(id, part, into, old)
	if err != nil {
		return Skill{}, "", err
	}
	if file := filepath.Join(l.dir, filepath.FromSlash(rel)); !bytes.Equal(text, old) {
		if _, err = keep(file, old); err == nil {
			err = store.WriteFile(file, text)
		}
		if err != nil {
			return Skill{}, "", fmt.Errorf("skill %s: %w", into, err)
		}
	}
	version, err := l.putAway(from)
	if err != nil {
		return Skill{}, "", fmt.Errorf("skill %s: %w", id, err)
	}
	return newSkill(path.Base(into), rel, readHead(text)), l.shown(version), nil
}

// mayMerge says why the skill called id, which lies at from, stays by itself.
func mayMerge(id, from, into, rel string, h head) error {
	switch {
	case Readers(from) != Readers(rel):
		return fmt.Errorf("%s and %s are for different people: leave both as they are", id, into)
	case len(h.triggers) > 0:
		return fmt.Errorf("%s has triggers of its own: leave it as it is", id)
	case from != id+".md":
		return fmt.Errorf("%s is a folder, in which there may be more: leave it as it is", id)
	}
	return nil
}

// merged is the text old of the skill called into with part, the text of id, at its end.
func merged(id string, part []byte, into string, old []byte) ([]byte, error) {
	h := readHead(part)
	section := "\n\n## " + path.Base(id) + ": " + h.summary + "\n\n" + strings.Trim(textOf(part), "\r\n") + "\n"
	text := old
	if !bytes.Contains(old, []byte(section)) { // it was cut off before the end, the last time
		text = append(bytes.TrimRight(bytes.Clone(old), "\r\n"), section...)
	}
	text, err := noMoreTrusted(into, text, h.integrity)
	if err != nil {
		return nil, err
	}
	if n := utf8.RuneCount(text); n > longestMerged {
		return nil, fmt.Errorf("%s would have %d characters, and %d can be read in one piece: choose another skill", into, n, longestMerged)
	}
	return text, nil
}

// noMoreTrusted is the text of the skill called id with at most that integrity.
func noMoreTrusted(id string, text []byte, integrity trust.Integrity) ([]byte, error) {
	if integrity >= readHead(text).integrity {
		return text, nil
	}
	with, ok := relabel(text, integrity)
	if !ok {
		return nil, fmt.Errorf("the front matter of %s cannot be changed by a program: leave this skill as it is", id)
	}
	return with, nil
}

// find reads the file of the skill called id.
func (l *Library) find(id string) (rel string, text []byte, err error) {
	for _, rel := range filesOf(id) {
		text, err := l.read(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && len(text) > maxText {
			err = fmt.Errorf("it is longer than %d KiB: leave it as it is", maxText>>10)
		}
		if err != nil {
			return "", nil, fmt.Errorf("skill %s: %w", id, err)
		}
		return rel, text, nil
	}
	return "", nil, fmt.Errorf("there is no skill %q: send a name from the list", id)
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
	return version, root.Rename(filepath.FromSlash(rel), filepath.Join(filepath.Dir(filepath.FromSlash(rel)), filepath.Base(version))) // over the empty file that we made
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
	return append([]byte(fence+"\n"), frontLines(old, "description")...)
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
