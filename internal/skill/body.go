package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"reverie/internal/store"
)

const (
	maxBody   = 64 << 10 // bytes that Body returns
	keptTexts = 16       // texts that Body remembers
)

// text is what Body read last from the file of a skill.
type text struct {
	stamp   store.Stamp
	settled bool
	body    string
}

// Body returns the text of the skill called id without its front matter, at most 64 KiB: of a
// longer one the beginning, and a line that says so. It reads the file only when
// it changed. A skill that is not there is an error that wraps fs.ErrNotExist.
func (l *Library) Body(id string) (string, error) {
	files := filesOf(id)
	if files == nil {
		return "", fmt.Errorf("skill %q: that is no name of a skill: %w", id, fs.ErrNotExist)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rel := range files {
		now := l.now()
		stamp, err := store.Stat(filepath.Join(l.dir, filepath.FromSlash(rel)))
		switch {
		case err != nil:
			return "", fmt.Errorf("skill %s: %w", id, err)
		case !stamp.Exists():
			continue
		case !stamp.Regular():
			return "", fmt.Errorf("skill %s: %s%s is not a regular file", id, pathPrefix, rel)
		}
		if t := l.texts[id]; t.stamp == stamp && t.settled {
			return t.body, nil
		}
		body, err := l.readBody(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("skill %s: %w", id, err)
		}
		if len(l.texts) >= keptTexts {
			clear(l.texts)
		}
		l.texts[id] = text{stamp, stamp.Settled(now), body}
		return body, nil
	}
	delete(l.texts, id)
	return "", fmt.Errorf("skill %s: its file %s%s.md is not there: %w", id, pathPrefix, id, fs.ErrNotExist)
}

func (l *Library) readBody(rel string) (string, error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(rel))
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, headSize+maxBody+1))
	if err != nil {
		return "", err
	}
	return cutBody(clean(textOf(raw)), len(raw) > headSize+maxBody, fmt.Sprintf("\n[The skill is longer than %d KiB. The rest stands in %s%s.]", maxBody>>10, pathPrefix, rel)), nil
}

// textOf is a skill's text without front matter, where there is some.
func textOf(raw []byte) string {
	front, body, _, closed := cutFront(raw)
	if closed {
		var h head
		if !h.readFront(front, 1) {
			body = raw
		}
	}
	return string(body)
}

// clean makes a file's bytes plain text with \n as line ends.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r) || r == '\uFEFF':
			return -1
		}
		return r
	}, s)
	return strings.Trim(s, "\n")
}

// cutBody shortens a text that is too long after a whole line, and says so; also
// when more of it was not read.
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
