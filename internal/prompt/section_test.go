package prompt

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestKeepLines(t *testing.T) {
	c := newContent(content{lines: []string{"old mine", "new mine", "ours"}, ranks: []int{1, 0, 0}})
	if got := strings.Join(keepLines(c, 13), "|"); got != "new mine|ours" {
		t.Errorf("by rank: %q, want the newest of every scope", got)
	}
	c = newContent(content{lines: []string{"c", "b", "a"}, ranks: []int{2, 1, 0}})
	if got := strings.Join(keepLines(c, 3), "|"); got != "b|a" {
		t.Errorf("by rank: %q, want them in their order", got)
	}
	c = newContent(content{lines: []string{"first", "second", "third"}})
	if got := strings.Join(keepLines(c, 12), "|"); got != "first|second" {
		t.Errorf("without ranks: %q, want the first ones", got)
	}
}

func TestShrinkRespectsItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab é水\t")), 0, 30, -1), 1, 30).Draw(t, "lines")
		most := rapid.IntRange(0, 200).Draw(t, "most")
		way := rapid.SampledFrom([]Shrink{None, TailCut, Items, HeadTail}).Draw(t, "way")
		c := newContent(content{lines: lines})
		whole := strings.Join(lines, "\n")
		body, note := shrink(way, c, most)
		if n := utf8.RuneCountInString(body); n > most || !utf8.ValidString(body) {
			t.Fatalf("%d characters of %d allowed", n, most)
		}
		if fits := utf8.RuneCountInString(whole) <= most; fits != (note == "") || fits && body != whole {
			t.Fatalf("fits: %v, note %q, body %q", fits, note, body)
		}
	})
}

// A line that could never fit is passed over; one that does not fit any more ends the list.
func TestKeepLinesPassesOverLongOnes(t *testing.T) {
	c := newContent(content{lines: []string{"far too long", "a", "fits", "late", "b"}})
	for most, want := range map[int]string{0: "", 1: "a", 4: "a", 5: "a", 6: "a|fits", 11: "a|fits|late", 13: "far too long", 26: "far too long|a|fits|late|b"} {
		if got := strings.Join(keepLines(c, most), "|"); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
}

// What is cut in the middle keeps its beginning and its end, says what is missing, and
// uses the room that it has but for what whole lines cost.
func TestCutMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab é水\n\t😀")), 1, 200, -1).Draw(t, "text")
		most := rapid.IntRange(0, 200).Draw(t, "most")
		body, note := shrink(HeadTail, newContent(content{lines: []string{text}}), most)
		size := utf8.RuneCountInString(text)
		if size <= most {
			if body != text || note != "" {
				t.Fatalf("all of it fits, and is %q (%s)", body, note)
			}
			return
		}
		const mark = "\n[…]\n"
		if want := fmt.Sprintf("the middle is left out; %d of %d characters shown", utf8.RuneCountInString(body), size); note.String() != want {
			t.Fatalf("note %q, want %q", note, want)
		}
		if most <= 5 {
			if body != "" {
				t.Fatalf("%d characters for %q", most, body)
			}
			return
		}
		head, tail, ok := strings.Cut(body, mark)
		if !ok || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || !utf8.ValidString(body) || utf8.RuneCountInString(body) > most {
			t.Fatalf("%q was cut to %q", text, body)
		}
		if short := most - 5 - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail); !strings.Contains(text, "\n") && short != 0 {
			t.Fatalf("%d of %d characters are not used for %q", short, most, body)
		}
		if long := utf8.RuneCountInString(head); long > (most-5)*3/5 || most > 8 && len(head) == 0 {
			t.Fatalf("%d of %d characters are the beginning", long, most)
		}
	})
	if got := cutMiddle(strings.Repeat("a", 30)+"bbbbbbb\nc", 25); got != strings.Repeat("a", 12)+"\n[…]\nbbbbbb\nc" {
		t.Errorf("the end was cut at its last line: %q", got)
	}
	for most, want := range map[int]string{25: "one\ntwo\n[…]\nseven", 20: "one\ntwo\n[…]\nseven", 5: "", 6: "\n[…]\nn"} {
		if got := cutMiddle("one\ntwo\nthree\nfour\nfive\nsix\nseven", most); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
}

func TestCutTail(t *testing.T) {
	for most, want := range map[int]string{-1: "", 0: "", 2: "zw", 3: "zwö", 6: "zwölf", 7: "zwölf", 9: "zwölf", 12: "zwölf\nBoxkäm", 40: "zwölf\nBoxkämpfer"} {
		if got := cutTail("zwölf\nBoxkämpfer", most); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain text": "plain text", "a\nb\r\n\tc": "a b c", "a\u2028b\u0085c\u00a0d": "a b c d", "x\x00\x7fy": "x y", "x\x7fy": "x y", "": "", "\n": "",
		"äöüäöüäöü": "äöüäöüäöü", "äöüäöüäöüä": "äöüäöüäöüä", "äöüäöüäöüäö": "äöüäöüäöüä…", "0123456789": "0123456789", "0123456789x": "0123456789…",
	} {
		if got := oneLine(in, 10); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// Whatever it is made of, one line is one line, and no longer than it may be.
func FuzzOneLine(f *testing.F) {
	f.Add("a\nb", 3)
	f.Add("\xff\u2029 x", 0)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(0, min(most, 1000))
		got := oneLine(s, most)
		if strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && (unicode.IsSpace(r) || unicode.IsControl(r)) }) {
			t.Errorf("%q is %q", s, got)
		}
		if n := utf8.RuneCountInString(strings.TrimSuffix(got, "…")); n > most {
			t.Errorf("%q has %d characters of %d", got, n, most)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q is not valid", got)
		}
	})
}

func TestLayoutsAreInPromptOrder(t *testing.T) {
	for name, places := range layouts {
		rows, err := rowsOf(places, contributors, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, row := range rows {
			if seen[row.ID] {
				t.Errorf("%s: %s stands twice", name, row.ID)
			}
			seen[row.ID] = true
			if i > 0 && (rows[i-1].Zone == Tail && row.Zone == Prefix || rows[i-1].Zone == row.Zone && rows[i-1].Order >= row.Order) {
				t.Errorf("%s: %s stands after %s", name, row.ID, rows[i-1].ID)
			}
			tail := row.Change == NewLines || row.Change == Changed || row.Change == Once
			if tail != (row.Zone == Tail) {
				t.Errorf("%s: %s in the %s cannot change by %s", name, row.ID, row.Zone, row.Change)
			}
			if row.Max <= 0 || contributors[row.source].gather == nil || row.Keep <= 0 || row.Zone == Prefix && row.Title == "" {
				t.Errorf("%s: row %s is incomplete", name, row.ID)
			}
		}
	}
}
