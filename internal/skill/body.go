package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"reverie/internal/text"
	"strings"
)

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
