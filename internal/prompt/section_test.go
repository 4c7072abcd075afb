package prompt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestKeepLines(t *testing.T) {
	c := newContent(content{lines: []string{"old mine", "new mine", "ours"}, ranks: []int{1, 0, 0}})
	if got := strings.Join(keepLines(c, 13), "|"); got != "new mine|ours" {
		t.Errorf("by rank: %q, want the newest of every scope", got)
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
		way := rapid.SampledFrom([]Shrink{None, TailCut, Items}).Draw(t, "way")
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
