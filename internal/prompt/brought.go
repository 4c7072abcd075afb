package prompt

import (
	"fmt"
	"path/filepath"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
)

// What came with messages in files. Text stands in their message, fenced. Pictures are large, so an
// epoch begins with the newest two; none leaves before it ends, which it does with more than eight.
const (
	newestPictures = 2
	mostPictures   = 8
)

// shownFrom is the first message whose pictures are shown in an epoch that began with
// the message since.
func shownFrom(past []history.Message, since int64) int64 {
	n := 0
	from := since
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].ID > since || pictures(&past[i]) == 0 {
			continue
		}
		if n += pictures(&past[i]); n > newestPictures && n > pictures(&past[i]) {
			break
		}
		from = past[i].ID
		if n >= newestPictures {
			break
		}
	}
	return min(from, since)
}

func pictures(m *history.Message) int {
	n := 0
	for i := range m.Files {
		if m.Files[i].Picture != "" {
			n++
		}
	}
	return n
}

// tooManyPictures reports whether the epoch e shows more than it should.
func (r *request) tooManyPictures(e *epoch) bool {
	n, from := 0, shownFrom(r.turn.History, e.since)
	for i := range r.turn.History {
		if m := &r.turn.History[i]; m.ID >= from {
			n += pictures(m)
		}
	}
	return n > mostPictures
}

// brought is what the model gets of the files of a message: text that stands in it, and
// pictures. seen says whether those are still shown.
func brought(m *history.Message, nonce, dir string, seen bool) (text string, shown []llm.Picture) {
	var parts []string
	for i := range m.Files {
		f := &m.Files[i]
		name := section.OneLine(plain(f.Name), 120)
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
			parts = append(parts, openData(nonce, "file")+"\n"+head+"\n"+plain(f.Text)+"\n"+closeData(nonce))
		default:
			parts = append(parts, fmt.Sprintf("[file %s: %s]", name, section.OneLine(plain(f.Note.String()), 300)))
		}
	}
	return strings.Join(parts, "\n"), shown
}
