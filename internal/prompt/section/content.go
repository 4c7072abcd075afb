package section

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/trust"
)

// Frame is how many tokens the frame around a section takes.
const Frame = 8

// Content is what a contributor gathered. It never changes once made.
type Content struct {
	Source string            // what it is, in a word: names the fence, and what was shown of it
	Lead   string            // the program's words before the lines; stands even without lines
	Lines  []string          // what the source says
	ranks  []int             // which lines go first where room is short: the highest; nil = the last
	Names  []string          // what each line is the text of, where a text can change; nil = a changed line is another one
	In     []int64           // message that says a line already, for as long as it is sent; nil or 0 = none
	keys   []string          // what each line is, however it is worded, dated and cut; nil = itself
	Same   []string          // as what the section of all memories shows each line; "" = it never does
	Rest   string            // where to find the lines that are left out
	None   string            // what a tail says when there are no lines any more
	Note   string            // what was left out of it already
	from   []trust.Integrity // of each line; nil = of all as in integrity
	Hash   string            // of lead and lines

	Integrity trust.Integrity // of all lines; the words of a Trusted contributor need none

	Size int            // characters of the lines, joined
	Ids  []uint64       // hash of each line
	has  map[uint64]int // id → index

	more func() map[uint64]bool // ids of what the source says beside the lines; nil = nothing. Seldom asked, and long
}

// Says reports whether the source still says the line.
func (c *Content) Says(id uint64) bool {
	_, shown := c.has[id]
	return shown || c.more != nil && c.more()[id]
}

// NewContent completes c.
func NewContent(c Content) *Content {
	h := fnv.New64a()
	h.Write([]byte(c.Lead))
	c.has = make(map[uint64]int, len(c.Lines))
	c.Ids = make([]uint64, len(c.Lines))
	c.Size = max(0, len(c.Lines)-1) // the newlines
	if c.from != nil {
		c.Integrity = slices.Min(append(c.from[:len(c.from):len(c.from)], trust.Owner))
	}
	for i, l := range c.Lines {
		c.Size += utf8.RuneCountInString(l)
		c.Ids[i] = LineID(l)
		if c.keys != nil {
			c.Ids[i] = LineID(c.keys[i])
		}
		c.has[c.Ids[i]] = i
		h.Write([]byte{'\n'})
		h.Write([]byte(l))
	}
	c.Hash = strconv.FormatUint(h.Sum64(), 36)
	return &c
}

// Only returns a content of the lines with these indices, in this order, for a tail:
// there the last ones go first.
func (c *Content) Only(index []int) *Content {
	part := Content{Source: c.Source, Lead: c.Lead, Rest: c.Rest, Integrity: c.Integrity,
		Lines: pick(c.Lines, index), from: pick(c.from, index),
		Names: pick(c.Names, index), keys: pick(c.keys, index), Same: pick(c.Same, index)}
	if c.Same != nil {
		part.ranks = pick(c.ranks, index)
	}
	return NewContent(part)
}

func pick[T any](all []T, index []int) (picked []T) {
	if all == nil {
		return nil
	}
	for _, i := range index {
		picked = append(picked, all[i])
	}
	return picked
}

// LineID is a short name for a line.
func LineID(line string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(line))
	return h.Sum64()
}

// Cut returns the lines of c in at most most characters, and a note on what was left out, if
// anything was.
func (c *Content) Cut(way Shrink, most int) (body, note string) {
	if c.Size <= most {
		return strings.Join(c.Lines, "\n"), ""
	}
	switch way {
	case Items:
		lines := keepLines(c, most)
		return strings.Join(lines, "\n"), fmt.Sprintf("%d of %d lines shown", len(lines), len(c.Lines))
	case TailCut:
		cut := cutTail(strings.Join(c.Lines, "\n"), most)
		return cut, cutAfter(cut, c)
	case HeadTail:
		cut := cutMiddle(strings.Join(c.Lines, "\n"), most)
		return cut, fmt.Sprintf("the middle is left out; %d of %d characters shown", utf8.RuneCountInString(cut), c.Size)
	default:
		return "", fmt.Sprintf("%d characters are more than the %d there is room for", c.Size, most)
	}
}

// cutAfter is the note on c of which text is the beginning.
func cutAfter(text string, c *Content) string {
	return fmt.Sprintf("cut off after %d of %d characters", utf8.RuneCountInString(text), c.Size)
}

// keepLines returns the lines of the lowest ranks that fit in most characters,
// in their order. A line that is too long by itself costs the others nothing.
func keepLines(c *Content, most int) []string {
	rank := func(i int) int {
		if c.ranks == nil {
			return i
		}
		return c.ranks[i]
	}
	byRank := make([]int, len(c.Lines))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortStableFunc(byRank, func(i, j int) int { return rank(i) - rank(j) })
	size := -1
	var kept []int
	for _, i := range byRank {
		n := utf8.RuneCountInString(c.Lines[i])
		if n > most {
			continue
		}
		if size += n + 1; size > most {
			break
		}
		kept = append(kept, i)
	}
	slices.Sort(kept)
	lines := make([]string, len(kept))
	for at, i := range kept {
		lines[at] = c.Lines[i]
	}
	return lines
}

// cutTail returns the first most characters of s, or less, so that it ends with
// a line if one ends in the second half.
func cutTail(s string, most int) string {
	if most <= 0 {
		return ""
	}
	n := 0
	for i := range s {
		if n == most {
			s = s[:i]
			break
		}
		n++
	}
	if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
		s = s[:i]
	}
	return s
}

// cutMiddle returns beginning and end of s, together at most most characters,
// with a mark between them.
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

// OneLine makes one line of other people's text: white space and control
// characters become single blanks. Text of more than most characters is cut.
func OneLine(s string, most int) string {
	other := func(r rune) bool { // than a blank or what can be seen
		return r < ' ' || r >= 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r))
	}
	if len(s) <= most && !strings.ContainsFunc(s, other) {
		return s
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return s
}
