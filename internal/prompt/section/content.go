package section

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	words "reverie/internal/text"
	"reverie/internal/trust"
	"reverie/internal/voice"
)

// Frame is the overhead of a section in tokens.
const Frame = 8

// Content is what a contributor gathered. It is immutable.
type Content struct {
	Source string // names the fence, and identifies what was shown
	Lead   string // the program's words before the lines; shown even without lines
	Lines  []Line // the source's words
	Rest   string // where to find the lines left out
	None   string // what a tail says once there are no lines
	Note   string // what was left out already
	Hash   string // of lead and lines
	Size   int    // characters of the lines, joined

	Choices []voice.Choice // that the lines stand for, if they are of style

	Integrity trust.Integrity // of the least trusted line; the words of a Trusted contributor need none

	ranked bool                    // lines of the lowest rank stay when room is short, rather than the first
	hides  func(ids []uint64) bool // whether the source has all these lines, too; nil = it has no others
}

// Line is one line of a source.
type Line struct {
	Text     string
	ID       uint64          // of an entry of memory, its number; else a hash of its identity
	AsMemory string          // its text in the section of all memories; "" = never there
	MemoryID uint64          // its ID there
	SaidIn   int64           // message that says it, for as long as that is sent; 0 = none
	key      string          // its identity, independent of wording, date and cuts; "" = Text
	rank     int             // see Content.ranked
	from     trust.Integrity // of Text
}

// linesOf makes lines from texts of one integrity.
func linesOf(from trust.Integrity, texts ...string) []Line {
	lines := make([]Line, len(texts))
	for i, t := range texts {
		lines[i] = Line{Text: t, from: from}
	}
	return lines
}

// Lacks reports whether the source no longer has one of the lines.
func (c *Content) Lacks(lines []uint64) bool {
	said := map[uint64]bool{}
	for _, l := range c.Lines {
		said[l.ID] = true
	}
	var others []uint64
	for _, id := range lines {
		if !said[id] {
			said[id], others = true, append(others, id)
		}
	}
	return len(others) > 0 && (c.hides == nil || !c.hides(others))
}

// NewContent completes c.
func NewContent(c Content) *Content {
	h := fnv.New64a()
	h.Write([]byte(c.Lead))
	c.Size, c.Integrity = max(0, len(c.Lines)-1), trust.Owner // the newlines
	for i := range c.Lines {
		l := &c.Lines[i]
		c.Size += utf8.RuneCountInString(l.Text)
		c.Integrity = min(c.Integrity, l.from)
		if l.ID == 0 {
			l.ID = LineID(cmp.Or(l.key, l.Text))
		}
		h.Write([]byte("\n" + l.Text))
	}
	c.Hash = strconv.FormatUint(h.Sum64(), 36)
	return &c
}

// Only returns a content of the lines with these indices, in this order.
func (c *Content) Only(index []int) *Content {
	part := *c
	part.Lines = nil
	for _, i := range index {
		part.Lines = append(part.Lines, c.Lines[i])
	}
	return NewContent(part)
}

// IDs returns the ids of the lines.
func (c *Content) IDs() []uint64 {
	ids := make([]uint64, len(c.Lines))
	for i, l := range c.Lines {
		ids[i] = l.ID
	}
	return ids
}

// Text returns all lines.
func (c *Content) Text() string { return joined(c.Lines) }

func joined(lines []Line) string {
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.Text
	}
	return strings.Join(texts, "\n")
}

// LineID returns a short hash of a line.
func LineID(line string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(line))
	return h.Sum64()
}

// Cut shortens c to at most most characters. note says what was left out; "" = nothing.
func (c *Content) Cut(way Shrink, most int) (body, note string) {
	if c.Size <= most {
		return c.Text(), ""
	}
	switch way {
	case Items:
		lines := keepLines(c, most)
		return joined(lines), fmt.Sprintf("%d of %d lines shown", len(lines), len(c.Lines))
	case TailCut:
		cut := cutTail(c.Text(), most)
		return cut, cutNote(cut, c)
	case HeadTail:
		cut := cutMiddle(c.Text(), most)
		return cut, fmt.Sprintf("the middle is left out; %d of %d characters shown", utf8.RuneCountInString(cut), c.Size)
	default:
		return "", fmt.Sprintf("%d characters are more than the %d there is room for", c.Size, most)
	}
}

// cutNote returns the note on a content cut to text.
func cutNote(text string, c *Content) string {
	return fmt.Sprintf("cut off after %d of %d characters", utf8.RuneCountInString(text), c.Size)
}

// keepLines returns the lines of the lowest ranks that fit into most characters, in order. It skips
// a line that is too long by itself.
func keepLines(c *Content, most int) (kept []Line) {
	byRank := make([]int, len(c.Lines))
	for i := range byRank {
		byRank[i] = i
	}
	if c.ranked {
		slices.SortStableFunc(byRank, func(i, j int) int { return c.Lines[i].rank - c.Lines[j].rank })
	}
	size, stays := -1, make([]bool, len(c.Lines))
	for _, i := range byRank {
		n := utf8.RuneCountInString(c.Lines[i].Text)
		if n > most {
			continue
		}
		if size += n + 1; size > most {
			break
		}
		stays[i] = true
	}
	for i, l := range c.Lines {
		if stays[i] {
			kept = append(kept, l)
		}
	}
	return kept
}

// cutTail returns at most the first most characters of s. It cuts at a line end if one is in the
// second half.
func cutTail(s string, most int) string {
	if most <= 0 {
		return ""
	}
	if r := []rune(s); len(r) > most {
		s = string(r[:most])
	}
	if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
		s = s[:i]
	}
	return s
}

// cutMiddle returns the beginning and end of s, together at most most characters. A mark is between
// them.
func cutMiddle(s string, most int) string {
	const mark = "\n[…]\n"
	most -= utf8.RuneCountInString(mark)
	if most <= 0 {
		return ""
	}
	head := cutTail(s, most*3/5)
	runes := []rune(s)
	end := string(runes[len(runes)-(most-most*3/5):])
	if i := strings.IndexByte(end, '\n'); i >= 0 && i < len(end)/2 {
		end = end[i+1:]
	}
	return head + mark + end
}

// OneLine joins foreign text to one line: white space and control characters become single blanks.
// It cuts text after most characters.
func OneLine(s string, most int) string {
	other := func(r rune) bool { // neither a blank nor visible
		return r < ' ' || r >= 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r))
	}
	if len(s) > most || strings.ContainsFunc(s, other) {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	}
	return words.Clip(s, most)
}
