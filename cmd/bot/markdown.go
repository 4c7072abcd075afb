package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// style is how a character looks on a terminal: a set of the attributes below.
type style uint8

const (
	bold style = 1 << iota
	faint
	italic
	struck
	code
)

// cell is one character with its style.
type cell struct {
	r rune
	s style
}

// columns is how many columns of a terminal a character takes.
func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

func columnsOf(cells []cell) (n int) {
	for _, c := range cells {
		n += columns(c.r)
	}
	return n
}

func styled(text string, s style) (cells []cell) {
	for _, r := range text {
		cells = append(cells, cell{r, s})
	}
	return cells
}

// paint returns the characters of a line with the terminal's codes for their styles.
func paint(cells []cell) string {
	var out strings.Builder
	now, coloured := style(0), os.Getenv("NO_COLOR") == ""
	set := func(s style) {
		if s != now && coloured {
			if now != 0 {
				out.WriteString("\x1b[0m")
			}
			for i, attribute := range []string{"1", "2", "3", "9", "36"} {
				if s&(1<<i) != 0 {
					fmt.Fprintf(&out, "\x1b[%sm", attribute)
				}
			}
		}
		now = s
	}
	for _, c := range cells {
		set(c.s)
		out.WriteRune(c.r)
	}
	set(0)
	return out.String()
}

// wrap breaks cells into lines of at most room columns, between words where it can. Lines
// after the first begin with indent.
func wrap(cells, indent []cell, room int) (lines [][]cell) {
	room = max(room, columnsOf(indent)+8)
	var now []cell
	used, breakAt, begin := 0, 0, 0
	for _, c := range cells {
		for used+columns(c.r) > room && c.r != ' ' {
			if breakAt <= begin {
				breakAt = len(now) // a word longer than the line
			}
			rest := now[breakAt:]
			lines = append(lines, trimmed(now[:breakAt]))
			now = slices.Concat(indent, rest)
			used, begin = columnsOf(now), len(indent)
			breakAt = begin
		}
		wide := columns(c.r) == 2
		if wide && len(now) > begin {
			breakAt = len(now)
		}
		now, used = append(now, c), used+columns(c.r)
		if c.r == ' ' && len(now) > begin+1 || wide {
			breakAt = len(now)
		}
	}
	return append(lines, trimmed(now))
}

func trimmed(cells []cell) []cell {
	for len(cells) > 0 && cells[len(cells)-1].r == ' ' {
		cells = cells[:len(cells)-1]
	}
	return cells
}

// spans are the marks around words, longest first.
var spans = []struct {
	mark string
	s    style
}{{"**", bold}, {"__", bold}, {"~~", struck}, {"`", code}, {"*", italic}, {"_", italic}}

// inline returns the words of a line in their styles. From cell open on, they may look
// different when the line goes on: a mark there has no end.
func inline(text string, s style) (cells []cell, open int) {
	open = -1
	before := ' '
next:
	for text != "" {
		if len(text) > 1 && text[0] == '\\' && strings.ContainsRune("\\`*_~[]#|", rune(text[1])) {
			cells, text, before = append(cells, cell{rune(text[1]), s}), text[2:], 'x'
			continue
		}
		for _, span := range spans {
			rest, found := strings.CutPrefix(text, span.mark)
			if !found || span.mark[0] == '_' && (unicode.IsLetter(before) || unicode.IsDigit(before)) {
				continue
			}
			if open < 0 && rest == "" {
				open = len(cells)
			}
			if len(span.mark) == 2 && strings.HasPrefix(rest, " ") { // no mark, and not half of one
				cells, text, before = append(cells, styled(span.mark, s)...), rest, rune(span.mark[0])
				continue next
			}
			if rest == "" || span.s != code && strings.HasPrefix(rest, " ") {
				continue
			}
			end := spanEnd(rest, span.mark)
			if end <= 0 {
				if open < 0 {
					open = len(cells)
				}
				if len(span.mark) == 2 { // not the beginning of two single marks
					cells, text = append(cells, styled(span.mark, s)...), rest
					continue next
				}
				continue
			}
			if open < 0 && len(span.mark) == 1 && end+1 == len(rest) { // its end may become half of another mark
				open = len(cells)
			}
			inner := styled(rest[:end], s|code)
			if span.s != code {
				inner, _ = inline(rest[:end], s|span.s)
			}
			cells, text, before = append(cells, inner...), rest[end+len(span.mark):], 'x'
			continue next
		}
		r, size := utf8.DecodeRuneInString(text)
		cells, text, before = append(cells, cell{r, s}), text[size:], r
	}
	return cells, open
}

// spanEnd finds the mark that ends a span.
func spanEnd(text, mark string) int {
	for at := 1; at < len(text); at++ {
		if strings.HasPrefix(text[at:], mark) && (text[at-1] != ' ' || mark == "`") && text[at-1] != '\\' {
			if len(mark) == 1 && mark != "`" && strings.HasPrefix(text[at:], mark+mark) { // a double mark inside
				at++
				continue
			}
			return at
		}
	}
	return -1
}

var (
	fenceLine   = regexp.MustCompile("^\\s*(```|~~~)")
	headingLine = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	quoteLine   = regexp.MustCompile(`^\s{0,3}>\s?`)
	itemLine    = regexp.MustCompile(`^(\s*)([-*+]|\d{1,9}[.)])\s+`)
	ruleLine    = regexp.MustCompile(`^\s{0,3}([-*_])\s*([-*_]\s*){2,}$`)
	tableRule   = regexp.MustCompile(`^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$`)
)

// markdown renders text for a terminal of room columns. While more of it comes, whole is
// false, and only the lines that can no longer change are returned.
func markdown(text string, room int, whole bool) (lines []string) {
	source := strings.Split(strings.ReplaceAll(withoutCommands(text), "\t", "    "), "\n")
	fenced := false
	for len(source) > 0 {
		line, last := source[0], len(source) == 1 && !whole
		if !fenced && strings.HasPrefix(strings.TrimSpace(line), "|") {
			n := slices.IndexFunc(source, func(l string) bool { return !strings.HasPrefix(strings.TrimSpace(l), "|") })
			if n < 0 {
				n = len(source)
			}
			if !whole && n >= len(source)-1 { // another row may make its columns wider
				break
			}
			lines, source = append(lines, table(source[:n], room)...), source[n:]
			continue
		}
		source = source[1:]
		if fenceLine.MatchString(line) {
			fenced = !fenced
			continue
		}
		if fenced {
			if !last {
				lines = append(lines, paint(styled("  "+line, code)))
			}
			continue
		}
		rendered := block(line, room, !last)
		if last { // its end may become longer
			rendered = rendered[:len(rendered)-1]
		}
		for _, l := range rendered {
			lines = append(lines, paint(l))
		}
	}
	lines = slices.CompactFunc(lines, func(a, b string) bool { return a == "" && b == "" })
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// block renders one line of Markdown, and of one that is not whole the part that is sure.
func block(line string, room int, whole bool) (lines [][]cell) {
	if quote := quoteLine.FindString(line); quote != "" {
		for _, l := range block(line[len(quote):], room-2, whole) {
			lines = append(lines, slices.Concat(styled("│ ", faint), l))
		}
		return lines
	}
	if ruleLine.MatchString(line) {
		return [][]cell{styled(strings.Repeat("─", max(3, min(room, 40))), faint)}
	}
	look := style(0)
	var head []cell
	if m := headingLine.FindStringSubmatch(line); m != nil {
		line, look = m[1], bold
	} else if m := itemLine.FindStringSubmatch(line); m != nil {
		sign := m[2]
		if len(sign) == 1 {
			sign = "•"
		}
		head, line = styled(m[1]+sign+" ", 0), line[len(m[0]):]
	}
	cells, open := inline(line, look)
	if !whole && open >= 0 {
		cells = cells[:open]
	}
	return wrap(slices.Concat(head, cells), styled(strings.Repeat(" ", len(head)), 0), room)
}

// table renders the rows of a table with even columns, or where that takes too much room as lines.
func table(rows []string, room int) (lines []string) {
	var cells [][][]cell
	var widths []int
	for _, row := range rows {
		if tableRule.MatchString(row) {
			cells = append(cells, nil)
			continue
		}
		row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
		var parts [][]cell
		for i, part := range strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), "|") {
			words, _ := inline(strings.TrimSpace(strings.ReplaceAll(part, "\x00", "|")), 0)
			parts = append(parts, words)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columnsOf(words))
		}
		cells = append(cells, parts)
	}
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for _, parts := range cells {
		var line []cell
		for i, w := range widths {
			switch {
			case parts == nil && i > 0:
				line = append(line, styled("─┼─", faint)...)
			case i > 0 && i < len(parts):
				line = append(line, styled(" │ ", faint)...)
			}
			if parts == nil {
				line = append(line, styled(strings.Repeat("─", w), faint)...)
			} else if i < len(parts) {
				line = append(line, parts[i]...)
				if i < len(parts)-1 && total <= room {
					line = append(line, styled(strings.Repeat(" ", w-columnsOf(parts[i])), 0)...)
				}
			}
		}
		if parts == nil && total > room {
			line = line[:min(len(line), room)]
		}
		for _, l := range wrap(line, nil, room) {
			lines = append(lines, paint(l))
		}
	}
	return lines
}
