package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
)

const maxBody = 64 << 10 // bytes that Body returns

// Body returns the text of the skill called id without its front matter, at most 64 KiB: of a
// longer one the beginning, and a line that says so. A skill that is not there is an error
// that wraps fs.ErrNotExist.
func (l *Library) Body(id string) (string, error) {
	files := filesOf(id)
	if files == nil {
		return "", fmt.Errorf("skill %q: that is no name of a skill: %w", id, fs.ErrNotExist)
	}
	for _, rel := range files {
		raw, err := l.read(rel, headSize+maxBody+1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("skill %s: %w", id, err)
		}
		_, body := frontOf(raw)
		note := fmt.Sprintf("\n[The skill is longer than %d KiB. The rest stands in %s%s.]", maxBody>>10, pathPrefix, rel)
		return cutBody(clean(string(body)), len(raw) > headSize+maxBody, note), nil
	}
	return "", fmt.Errorf("skill %s: its file %s%s.md is not there: %w", id, pathPrefix, id, fs.ErrNotExist)
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
