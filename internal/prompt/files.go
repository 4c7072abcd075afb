package prompt

import (
	"fmt"
	"path/filepath"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
)

// Files of messages. Text is fenced in its message. Pictures are large, so an epoch starts with the
// newest two. Pictures stay until the epoch ends, which more than eight of them cause.
const (
	newestPictures = 2
	mostPictures   = 8
)

// firstWithPictures returns the first message whose pictures are shown in an epoch. The epoch began
// with the message since.
func firstWithPictures(past []history.Message, since int64) int64 {
	n := 0
	from := since
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].ID > since || countPictures(&past[i]) == 0 {
			continue
		}
		if n += countPictures(&past[i]); n > newestPictures && n > countPictures(&past[i]) {
			break
		}
		from = past[i].ID
		if n >= newestPictures {
			break
		}
	}
	return min(from, since)
}

func countPictures(m *history.Message) int {
	n := 0
	for i := range m.Files {
		if m.Files[i].Picture != "" {
			n++
		}
	}
	return n
}

// tooManyPictures reports whether the epoch e shows more pictures than allowed.
func (r *request) tooManyPictures(e *epoch) bool {
	n, from := 0, firstWithPictures(r.turn.History, e.since)
	for i := range r.turn.History {
		if m := &r.turn.History[i]; m.ID >= from {
			n += countPictures(m)
		}
	}
	return n > mostPictures
}

// renderFiles returns what the model gets of a message's files: text and pictures. seen says whether
// its pictures are still shown.
func renderFiles(m *history.Message, nonce, dir string, seen bool) (text string, shown []llm.Picture) {
	var parts []string
	for i := range m.Files {
		f := &m.Files[i]
		name := section.OneLine(neutralize(f.Name), 120)
		switch {
		case f.Picture != "" && seen:
			file := filepath.Join(dir, filepath.FromSlash(f.Picture))
			shown = append(shown, llm.Picture{Name: name, File: file, Width: f.Width, Height: f.Height})
		case f.Picture != "":
			parts = append(parts, fmt.Sprintf("[image %s, %d×%d: shown before; it is not in view any more]", name, f.Width, f.Height))
		case f.Text != "":
			head := "file " + name
			if f.More != "" {
				head += fmt.Sprintf(` (not all of it: read_file "data/%s" shows the rest)`, f.More)
			}
			parts = append(parts, openData(nonce, "file")+"\n"+head+"\n"+neutralize(f.Text)+"\n"+closeData(nonce))
		default:
			parts = append(parts, fmt.Sprintf("[file %s: %s]", name, section.OneLine(neutralize(f.Note.String()), 300)))
		}
	}
	return strings.Join(parts, "\n"), shown
}
