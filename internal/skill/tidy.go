package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
