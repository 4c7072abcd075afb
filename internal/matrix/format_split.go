package matrix

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxParts is how many messages an answer takes before it is better read as
	// a file.
	maxParts = 4
	// maxInfo is how long a line may be that opens a fenced block, for all of it to
	// be said again where the block goes on.
	maxInfo = 200
)

// piece is a stretch of a text that is not divided unless it must be: a
// paragraph, a list, a fenced block, a table, or some lines of one.
type piece struct {
	head, text, tail string // text is the author's; what was cut is closed and opened again around it
	again, closing   string // the head of what is cut off, and the tail of what it is cut off from
	item             bool   // it is or belongs to an item of a list
	more             bool   // the rest of the piece before
}

func (p piece) String() string { return p.head + p.text + p.tail }

// split cuts a text into parts that fit into one event each: between
// paragraphs, fenced blocks and tables, else between lines, else between words,
// else anywhere between two characters. A fenced block that must be cut is
// closed and opened again; a table gets its first row again.
func split(md string, limit int) []string {
	md = shallow(strings.ToValidUTF8(md, "\uFFFD"))
	if size(md) <= limit {
		return []string{md}
	}
	var parts []string
	for _, p := range fill(piecesOf(md), limit) {
		parts = append(parts, joinPieces(p))
	}
	if len(parts) == 0 {
		return []string{clip(md, limit/8)}
	}
	return parts
}

// fill puts as many pieces into each part as fit. The cost is first estimated:
// each part is rendered once, or a few times where the estimate was wrong.
func fill(list []piece, limit int) (parts [][]piece) {
	var rest []piece // the next one last
	for i := len(list) - 1; i >= 0; i-- {
		rest = append(rest, list[i])
	}
	take := func(n int) (part []piece) {
		for i := range n {
			part = append(part, rest[len(rest)-1-i])
		}
		return part
	}
	for len(rest) > 0 {
		first := rest[len(rest)-1]
		cost := estimate(first)
		if cost > 2*limit || size(joinPieces(take(1))) > limit {
			if a, b, ok := first.cut(min(limit, cost*3/4)); ok {
				rest = append(rest[:len(rest)-1], b, a)
				continue
			}
		}
		n := 1
		for used := cost; n < len(rest) && !rest[len(rest)-1-n].more; n++ {
			at := len(rest) - 1 - n
			next := estimate(rest[at])
			if next > limit && used < limit/2 { // it must be cut anyway, and its beginning finds room here
				if a, b, ok := rest[at].cut(limit - used); ok {
					rest = slices.Replace(rest, at, at+1, b, a)
					next = estimate(a)
				}
			}
			if used += next; used > limit {
				break
			}
		}
		for n > 1 && size(joinPieces(take(n))) > limit {
			n = max(1, n*3/4)
		}
		if n > 1 && n < len(rest) && strings.HasPrefix(rest[len(rest)-n].text, "#") {
			n-- // a heading goes with what it is above
		}
		parts = append(parts, take(n))
		rest = rest[:len(rest)-n]
	}
	return parts
}

// joinPieces writes pieces as one text. What was deep in a list is not so deep where a
// part begins with it, or it would be taken for code.
func joinPieces(part []piece) string {
	var b strings.Builder
	out := 0
	if part[0].item {
		out = indentOf(part[0].String())
	}
	for i, p := range part {
		s := p.String()
		if i > 0 {
			b.WriteString("\n\n")
		}
		if out = min(out, indentOf(s)); out > 0 {
			s = outdentBy(s, out)
		}
		b.WriteString(s)
	}
	return strings.Trim(b.String(), "\n")
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

func outdentBy(s string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(line[min(n, indentOf(line)):])
	}
	return b.String()
}

// estimate is about what a piece costs in an event: itself as JSON, and as HTML.
func estimate(p piece) int {
	return weighText(p.head) + weighText(p.text) + weighText(p.tail) + lineCost
}

// lineCost is about what the tags of a line, or of a cell, cost.
const lineCost = 34

func weighText(s string) (n int) {
	for i := range len(s) {
		n += weightOf(s[i])
	}
	return n
}

func weightOf(c byte) int {
	switch c {
	case '<', '>', '&':
		return 6 + 10
	case '"', '\'':
		return 2 + 10
	case '\n':
		return 2 + 2 + lineCost
	case '|':
		return 2 + lineCost
	case '\\':
		return 4
	}
	if c < 0x20 {
		return 12
	}
	return 2
}

// fence returns the marker of a line that opens a fenced block, and what stands
// before it there: quotations, items of lists.
func fence(line string) (before, marker string, ok bool) {
	t := line
	for m := nestMarker.FindString(t); m != ""; m = nestMarker.FindString(t) {
		t = t[len(m):]
	}
	t = strings.TrimLeft(t, " \t")
	before = line[:len(line)-len(t)]
	for _, c := range []string{"`", "~"} {
		if n := len(t) - len(strings.TrimLeft(t, c)); n >= 3 {
			return before, t[:n], c == "~" || !strings.Contains(t[n:], c)
		}
	}
	return "", "", false
}

// closesFence tells whether a line closes what marker opened.
func closesFence(line, marker string) bool {
	t := strings.Trim(line, "> \t\r")
	return strings.HasPrefix(t, marker) && strings.Trim(t, marker[:1]) == ""
}

var (
	listItem  = regexp.MustCompile(`^(?:[-+*]|[0-9]{1,9}[.)])[ \t]`)
	tableRule = regexp.MustCompile(`^\s{0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)
)

// piecesOf cuts Markdown at blank lines outside fenced blocks.
func piecesOf(md string) (out []piece) {
	var cur []string
	before, open, list := "", "", false
	end := func(closed bool) {
		if len(cur) == 0 {
			return
		}
		p := piece{text: strings.Join(cur, "\n"), item: list}
		switch {
		case open != "":
			deep := strings.Map(func(r rune) rune { // the next line of the same item
				if r == '>' || r == '\t' {
					return r
				}
				return ' '
			}, before)
			info := cur[0][len(before):]
			if len(cur[0]) > maxInfo {
				info = open
			}
			p.again, p.closing = deep+info+"\n", "\n"+deep+open
			if !closed {
				p.tail = p.closing
			}
		case len(cur) > 2 && strings.Contains(cur[0], "|") && strings.Contains(cur[1], "|") && tableRule.MatchString(cur[1]):
			p.again = cur[0] + "\n" + cur[1] + "\n"
		}
		out = append(out, p)
		cur, open = nil, ""
	}
	for line := range strings.SplitSeq(md, "\n") {
		if open != "" {
			cur = append(cur, line)
			if closesFence(line, open) {
				end(true)
			}
			continue
		}
		if strings.TrimSpace(line) == "" {
			end(true)
			continue
		}
		at, m, is := fence(line)
		if is {
			end(true)
			before, open = at, m
		}
		if indentOf(line) == 0 {
			list = listItem.MatchString(line)
		}
		cur = append(cur, line)
	}
	end(false)
	return out
}

// cut divides a piece: a costs at most about budget, b is the rest. It is not ok
// when there is but one character.
func (p piece) cut(budget int) (a, b piece, ok bool) {
	if weighText(p.again)+weighText(p.closing) > budget/4 {
		p.again, p.closing = "", ""
	}
	budget -= weighText(p.head) + weighText(p.closing) + lineCost
	at := p.border(budget)
	if at <= 0 || at >= len(p.text) {
		return p, piece{}, false
	}
	a = piece{head: p.head, text: p.text[:at], tail: p.closing, again: p.again, closing: p.closing, item: p.item, more: p.more}
	b = piece{head: p.again, text: p.text[at:], tail: p.tail, again: p.again, closing: p.closing, item: p.item, more: true}
	a.text = strings.TrimSuffix(a.text, "\n")
	return a, b, true
}

// border is where the text of a piece is best cut, so that what stands before
// is within budget.
func (p piece) border(budget int) int {
	cost, most := 0, 0
	for most < len(p.text) && (cost <= budget || most == 0) {
		cost += weightOf(p.text[most])
		most++
	}
	if most = most - 1; most < 1 { // the first byte alone is too much
		most = 1
	}
	first := 0 // what is repeated anyway stays together with something
	if p.again != "" && p.head == "" {
		first = len(p.again)
	}
	if at := p.lineBorder(first, most); at > first {
		return at
	}
	return wordBorder(p.text, most)
}

// lineBorder is the beginning of a line, in the last third of what is possible
// if there is one: of those the last one that is least deep in a list.
func (p piece) lineBorder(first, most int) int {
	best, depth := 0, 0
	for end := most; end > first; {
		n := strings.LastIndexByte(p.text[:end], '\n')
		if n < first || best > 0 && n < most*2/3 {
			break
		}
		if d := indentOf(p.text[n+1:]); best == 0 || p.closing == "" && d < depth {
			best, depth = n+1, d
		}
		end = n
	}
	return best
}

// wordBorder is behind a space near most, else between two characters.
func wordBorder(s string, most int) int {
	if most >= len(s) {
		return len(s)
	}
	if n := strings.LastIndexAny(s[:most], " \t"); n > most*3/4 {
		return n + 1
	}
	at := most
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	for back := at; back > 0 && at-back < 64; { // accents and emoji of several characters stay whole
		before, n := utf8.DecodeLastRuneInString(s[:back])
		if r, _ := utf8.DecodeRuneInString(s[back:]); before != '\u200d' && r != '\u200d' && !unicode.Is(unicode.M, r) {
			return back
		}
		back -= n
	}
	if at == 0 {
		_, at = utf8.DecodeRuneInString(s)
	}
	return at
}
