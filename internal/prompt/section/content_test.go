package section

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"reverie/internal/memory"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

func TestShrinkRespectsItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab é水\t")), 0, 30, -1), 1, 30).Draw(t, "lines")
		most := rapid.IntRange(0, 200).Draw(t, "most")
		way := rapid.SampledFrom([]Shrink{None, TailCut, Items, HeadTail}).Draw(t, "way")
		c := NewContent(Content{Lines: linesOf(trust.Owner, lines...)})
		whole := strings.Join(lines, "\n")
		body, note := c.Cut(way, most)
		if n := utf8.RuneCountInString(body); n > most || !utf8.ValidString(body) {
			t.Fatalf("%d characters of %d allowed", n, most)
		}
		if fits := utf8.RuneCountInString(whole) <= most; fits != (note == "") || fits && body != whole {
			t.Fatalf("fits: %v, note %q, body %q", fits, note, body)
		}
	})
}

// Lines of the lowest rank are kept, in order. A line that could never fit is skipped; the first
// that no longer fits ends the list.
func TestKeepLines(t *testing.T) {
	odd := []string{"far too long", "a", "fits", "late", "b"}
	for _, tt := range []struct {
		lines []string
		ranks []int
		most  int
		want  string
	}{
		{[]string{"old mine", "new mine", "ours"}, []int{1, 0, 0}, 13, "new mine|ours"}, {[]string{"c", "b", "a"}, []int{2, 1, 0}, 3, "b|a"},
		{[]string{"first", "second", "third"}, nil, 12, "first|second"}, {odd, nil, 0, ""}, {odd, nil, 1, "a"}, {odd, nil, 4, "a"},
		{odd, nil, 5, "a"}, {odd, nil, 6, "a|fits"}, {odd, nil, 11, "a|fits|late"}, {odd, nil, 13, "far too long"},
		{odd, nil, 26, "far too long|a|fits|late|b"},
	} {
		c := Content{Lines: linesOf(trust.Owner, tt.lines...), ranked: tt.ranks != nil}
		for i, rank := range tt.ranks {
			c.Lines[i].rank = rank
		}
		if got := strings.ReplaceAll(joined(keepLines(&c, tt.most)), "\n", "|"); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.lines, tt.most, got, tt.want)
		}
	}
}

// A text cut in the middle keeps its beginning and end, at lines, and states what is missing.
func TestCutMiddle(t *testing.T) {
	const numbers, letters = "one\ntwo\nthree\nfour\nfive\nsix\nseven", "aébcdefghijklmnopqrstuvwxyz"
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{numbers, 25, "one\ntwo\n[…]\nseven"}, {numbers, 20, "one\ntwo\n[…]\nseven"}, {numbers, 5, ""}, {numbers, 6, "\n[…]\nn"},
		{letters, 15, "aébcde\n[…]\nwxyz"}, {letters, 26, "aébcdefghijk\n[…]\nrstuvwxyz"},
		{strings.Repeat("a", 30) + "bbbbbbb\nc", 25, strings.Repeat("a", 12) + "\n[…]\nbbbbbb\nc"}, // not at the last line of the end
	} {
		got, note := NewContent(Content{Lines: linesOf(trust.Owner, tt.text)}).Cut(HeadTail, tt.most)
		want := fmt.Sprintf("the middle is left out; %d of %d characters shown", utf8.RuneCountInString(got), utf8.RuneCountInString(tt.text))
		expect.False(t, got != tt.want || note != want, "%d: %q (%s), want %q", tt.most, got, note, tt.want)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain text": "plain text", "a\nb\r\n\tc": "a b c", "a\u2028b\u0085c\u00a0d": "a b c d", "x\x00\x7fy": "x y", "x\x7fy": "x y", "": "", "\n": "", "\xff\u2029 x": "\xff x",
		"äöüäöüäöü": "äöüäöüäöü", "äöüäöüäöüä": "äöüäöüäöüä", "äöüäöüäöüäö": "äöüäöüäöüä…", "0123456789": "0123456789", "0123456789x": "0123456789…",
	} {
		expect.Equal(t, OneLine(in, 10), want, "%q is", in)
	}
}

// TestEntriesIntegrity: a list of memories has their least integrity.
func TestEntriesIntegrity(t *testing.T) {
	for _, c := range []struct {
		of   []trust.Integrity
		want trust.Integrity
	}{{[]trust.Integrity{trust.Owner, trust.User}, trust.User}, {[]trust.Integrity{trust.User, trust.Foreign, trust.Owner}, trust.Foreign}} {
		var entries []memory.Entry
		for _, i := range c.of {
			entries = append(entries, memory.Entry{Text: i.String(), Integrity: i})
		}
		expect.Equal(t, NewContent(Content{Lines: memoryLines(entries)}).Integrity, c.want, c.of)
	}
}
