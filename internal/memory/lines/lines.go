// Package lines parses and edits text files with one entry per line. It does no I/O.
package lines

import (
	"bytes"
	"reverie/internal/text"
	"slices"
	"strings"
	"unicode"
)

// BOM is the UTF-8 byte order mark that some editors write.
var BOM = []byte("\xef\xbb\xbf")

// Text returns the text of one line. For a comment or a blank line it returns "". Invalid UTF-8 and
// control characters are replaced in the result; the file keeps them.
func Text(line []byte) string {
	text := Trim(strings.ToValidUTF8(string(line), "\uFFFD"))
	if text == "" || text[0] == '#' {
		return ""
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = Trim(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, text))
	}
	if isEscaped(text) {
		text = text[1:]
	}
	return text
}

// Trim removes white space from both ends, and byte order marks from the beginning.
func Trim(text string) string {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' })
	return strings.TrimRightFunc(text, unicode.IsSpace)
}

// isEscaped reports whether text begins with backslashes and "#". Escape adds one backslash to an
// entry that begins with "#" or is escaped already.
func isEscaped(text string) bool {
	rest := strings.TrimLeft(text, `\`)
	return len(rest) < len(text) && strings.HasPrefix(rest, "#")
}

// Escape returns the line that stands for text.
func Escape(text string) string {
	if strings.HasPrefix(text, "#") || isEscaped(text) {
		return `\` + text
	}
	return text
}

// AppendLine returns data with line appended, in the file's style: with its line ending, and after
// a newline if the last line has none.
func appendLine(data []byte, line string) []byte {
	end := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		end = "\r\n"
	}
	out := make([]byte, 0, len(data)+len(line)+2*len(end))
	out = append(out, data...)
	if n := len(bytes.TrimPrefix(data, BOM)); n > 0 && data[len(data)-1] != '\n' && data[len(data)-1] != '\r' {
		out = append(out, end...)
	}
	out = append(out, line...)
	return append(out, end...)
}

// rawLine is one line of a file with its line ending.
type rawLine struct{ body, end []byte }

// splitLines splits data without loss: bodies and ends, concatenated, are data. A byte order mark
// stays with the first body.
func splitLines(data []byte) []rawLine {
	var lines []rawLine
	for len(data) > 0 {
		i := bytes.IndexAny(data, "\n\r")
		if i < 0 {
			return append(lines, rawLine{body: data})
		}
		n := 1
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			n = 2
		}
		lines = append(lines, rawLine{data[:i], data[i : i+n]})
		data = data[i+n:]
	}
	return lines
}

func (l rawLine) text() string { return Text(l.body) }

// Texts returns the texts of the lines of a file, without comments and blank lines.
func Texts(data []byte) []string {
	var texts []string
	for _, l := range splitLines(data) {
		if t := l.text(); t != "" {
			texts = append(texts, t)
		}
	}
	return texts
}

// Line is a line of a file with its entry.
type Line struct{ ID, Text string }

// Edit is the difference between two versions of a file: for every line now, the entry it was, or
// the one it corrects, or neither for a new line; and the removed entries.
type Edit struct {
	Lines   []Edited
	Removed []string // entry ids
}

// Edited is a line after an edit.
type Edited struct {
	Text     string
	ID       string // the entry, if the line is unchanged
	Replaces string // the entry that this line corrects
}

// Compare determines how a file with the lines before became one with the lines texts. Moved lines
// keep their entry. A line is a correction if it is similar to a removed one at the same place.
func Compare(before []Line, texts []string) Edit {
	byText := map[string][]int{} // text → its lines before, in order
	for i, l := range before {
		byText[l.Text] = append(byText[l.Text], i)
	}
	e := Edit{Lines: make([]Edited, len(texts))}
	unchanged := make([]bool, len(before))
	indexBefore := make([]int, len(texts))
	last := map[string]string{} // text → its entry, for lines that were duplicated
	for i, t := range texts {
		e.Lines[i].Text, indexBefore[i] = t, -1
		if at := byText[t]; len(at) > 0 {
			byText[t] = at[1:]
			indexBefore[i], unchanged[at[0]], e.Lines[i].ID, last[t] = at[0], true, before[at[0]].ID, before[at[0]].ID
		} else {
			e.Lines[i].ID = last[t]
		}
	}
	keptIDs := map[string]bool{}
	for i, l := range before {
		if unchanged[i] {
			keptIDs[l.ID] = true
		}
	}
	e.findCorrections(before, unchanged, keptIDs, indexBefore)
	corrected := map[string]bool{}
	for _, l := range e.Lines {
		corrected[l.Replaces] = true
	}
	for i, l := range before {
		if !unchanged[i] && !keptIDs[l.ID] && !corrected[l.ID] {
			e.Removed = append(e.Removed, l.ID)
			keptIDs[l.ID] = true // list it once
		}
	}
	return e
}

// findCorrections pairs new lines with removed ones between the same two neighbours, in order.
func (e *Edit) findCorrections(before []Line, unchanged []bool, keptIDs map[string]bool, indexBefore []int) {
	paired := map[string]bool{}
	nextBefore := 0 // index into before of the first line at this place
	for i := range e.Lines {
		if indexBefore[i] >= 0 {
			nextBefore = indexBefore[i] + 1
			continue
		}
		if e.Lines[i].ID != "" {
			continue
		}
		for at := nextBefore; at < len(before) && !unchanged[at]; at++ {
			id := before[at].ID
			if keptIDs[id] || paired[id] || !similar(before[at].Text, e.Lines[i].Text) {
				continue
			}
			e.Lines[i].Replaces, paired[id], nextBefore = id, true, at+1
			break
		}
	}
}

// similar reports whether two lines share at least half of their character bigrams.
func similar(a, b string) bool {
	pairs := func(s string) map[[2]rune]int {
		all := map[[2]rune]int{}
		var before rune = ' '
		for _, r := range strings.ToLower(s) {
			all[[2]rune{before, r}]++
			before = r
		}
		return all
	}
	x, y := pairs(a), pairs(b)
	same, total := 0, 0
	for p, n := range x {
		same += min(n, y[p])
		total += n
	}
	for _, n := range y {
		total += n
	}
	return 4*same >= total
}

// View is the desired content of a file.
type View struct {
	Want      []Line            // in the order in which new ones are added
	Successor map[string]string // retired entry → its replacement, which may be missing in Want
	Forgotten map[string]bool   // text.Hash of texts that are deleted from comments, too
}

// Render makes data, whose lines are the entries ids, hold v.Want. Lines of other entries are
// removed, corrected ones replaced in place, and new ones appended. Everything else stays as its
// author wrote it.
func Render(data []byte, ids []string, v View) (out []byte, newIDs []string) {
	texts := make(map[string]string, len(v.Want))
	for _, w := range v.Want {
		texts[w.ID] = w.Text
	}
	present := map[string]bool{}
	for _, id := range ids {
		present[id] = true
	}
	add := func(id string, parts ...[]byte) {
		out = append(out, slices.Concat(parts...)...)
		if id != "" {
			newIDs = append(newIDs, id)
		}
	}
	at := 0
	for _, l := range splitLines(data) {
		shown := l.text()
		if shown == "" {
			if len(v.Forgotten) == 0 || !v.Forgotten[text.Hash(strings.TrimLeft(string(l.body), "\ufeff \t#"))] {
				add("", l.body, l.end)
			}
			continue
		}
		id := ids[at]
		at++
		if _, wanted := texts[id]; wanted {
			add(id, l.body, l.end)
		} else if next := v.Successor[id]; !present[next] && texts[next] != "" {
			present[next] = true
			add(next, replaceText(l.body, Escape(texts[next])), l.end)
		} else if bytes.HasPrefix(l.body, BOM) {
			add("", BOM)
		}
	}
	for _, w := range v.Want {
		if present[w.ID] {
			continue
		}
		out = appendLine(out, Escape(w.Text))
		newIDs = append(newIDs, w.ID)
	}
	return out, newIDs
}

// replaceText replaces the text of body by line and keeps the white space around it.
func replaceText(body []byte, line string) []byte {
	head := body[:len(body)-len(bytes.TrimLeftFunc(bytes.TrimPrefix(body, BOM), unicode.IsSpace))]
	tail := body[len(bytes.TrimRightFunc(body, unicode.IsSpace)):]
	return slices.Concat(head, []byte(line), tail)
}
