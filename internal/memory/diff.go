package memory

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/text"
)

// rawLine is one line of a file as it stands there.
type rawLine struct{ body, end []byte }

// splitLines loses nothing: the lines' bodies and ends, one after the other, are
// data. A byte order mark stays with the first body.
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

func (l rawLine) text() string { return show(l.body) }

// lineTexts are the entries of a file, as people read them.
func lineTexts(data []byte) []string {
	var texts []string
	for _, l := range splitLines(data) {
		if t := l.text(); t != "" {
			texts = append(texts, t)
		}
	}
	return texts
}

// listed is an entry that stands in a file.
type listed struct{ id, text string }

// edit is what a person did to a file: for every line of it now, the entry it
// was, or the one it corrects, or neither for a new line; and what is gone.
type edit struct {
	lines []editedLine
	gone  []string // ids of the lines that are there no more
}

type editedLine struct {
	text     string
	id       string // the same entry as before
	replaces string // the entry that this line is a correction of
}

// compare finds out what was done to a file that held before and now has the
// lines texts. Lines that only moved are the same; a line is a correction if it
// is much like one that is gone and stood at the same place.
func compare(before []listed, texts []string) edit {
	known := map[string][]int{} // text → its lines before, in order
	for i, l := range before {
		known[l.text] = append(known[l.text], i)
	}
	e := edit{lines: make([]editedLine, len(texts))}
	kept := make([]bool, len(before))
	was := make([]int, len(texts))
	last := map[string]string{} // text → the entry it belongs to, for a line that stands twice now
	for i, t := range texts {
		e.lines[i].text, was[i] = t, -1
		if at := known[t]; len(at) > 0 {
			known[t] = at[1:]
			was[i], kept[at[0]], e.lines[i].id, last[t] = at[0], true, before[at[0]].id, before[at[0]].id
		} else {
			e.lines[i].id = last[t]
		}
	}
	still := map[string]bool{}
	for i, l := range before {
		if kept[i] {
			still[l.id] = true
		}
	}
	e.pair(before, kept, still, was)
	corrected := map[string]bool{}
	for _, l := range e.lines {
		corrected[l.replaces] = true
	}
	for i, l := range before {
		if !kept[i] && !still[l.id] && !corrected[l.id] {
			e.gone = append(e.gone, l.id)
			still[l.id] = true // once
		}
	}
	return e
}

// pair looks for corrections: between the same two neighbours, in order.
func (e *edit) pair(before []listed, kept []bool, still map[string]bool, was []int) {
	taken := map[string]bool{}
	next := 0 // the line before that the place begins with
	for i := range e.lines {
		if was[i] >= 0 {
			next = was[i] + 1
			continue
		}
		if e.lines[i].id != "" {
			continue
		}
		for at := next; at < len(before) && !kept[at]; at++ {
			id := before[at].id
			if still[id] || taken[id] || !alike(before[at].text, e.lines[i].text) {
				continue
			}
			e.lines[i].replaces, taken[id], next = id, true, at+1
			break
		}
	}
}

// alike tells a correction from another fact: half of the pairs of letters are
// the same.
func alike(a, b string) bool {
	if fold(a) == fold(b) {
		return true
	}
	pairs := func(s string) map[[2]rune]int {
		all := map[[2]rune]int{}
		var before rune = ' '
		for _, r := range fold(s) {
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

// view is what a file is to hold.
type view struct {
	want      []listed          // in the order in which new ones are added
	successor map[string]string // of entries that are no more: who took their place; it may be none of want
	forgotten map[string]bool   // textHash of what comments may not hold either
}

// render makes data, whose entries are ids line by line, hold v.want: lines whose
// entry is not wanted go, corrected ones are replaced where they stand, and new ones
// come to the end. All the rest stays as its owner wrote it.
func render(data []byte, ids []string, v view) (out []byte, now []string) {
	texts := make(map[string]string, len(v.want))
	for _, w := range v.want {
		texts[w.id] = w.text
	}
	there := map[string]bool{}
	for _, id := range ids {
		there[id] = true
	}
	add := func(id string, parts ...[]byte) {
		out = append(out, slices.Concat(parts...)...)
		if id != "" {
			now = append(now, id)
		}
	}
	at := 0
	for _, l := range splitLines(data) {
		shown := l.text()
		if shown == "" {
			if len(v.forgotten) == 0 || !v.forgotten[text.Hash(strings.TrimLeft(string(l.body), "\ufeff \t#"))] {
				add("", l.body, l.end)
			}
			continue
		}
		id := ids[at]
		at++
		if _, wanted := texts[id]; wanted {
			add(id, l.body, l.end)
		} else if next := v.successor[id]; !there[next] && texts[next] != "" {
			there[next] = true
			add(next, replaceText(l.body, toLine(texts[next])), l.end)
		} else if bytes.HasPrefix(l.body, bom) {
			add("", bom)
		}
	}
	for _, w := range v.want {
		if there[w.id] {
			continue
		}
		out = withLine(out, toLine(w.text))
		now = append(now, w.id)
	}
	return out, now
}

// replaceText puts line in the place of what body says, and leaves the white
// space around it.
func replaceText(body []byte, line string) []byte {
	head := body[:len(body)-len(bytes.TrimLeftFunc(bytes.TrimPrefix(body, bom), unicode.IsSpace))]
	tail := body[len(bytes.TrimRightFunc(body, unicode.IsSpace)):]
	return slices.Concat(head, []byte(line), tail)
}
