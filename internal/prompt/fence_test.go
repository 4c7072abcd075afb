package prompt

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckFences(t *testing.T) {
	tests := []struct {
		text string
		ok   bool
	}{
		{"plain k3f9 text", true},
		{`<data id="k3f9" source="memories">` + "\na\n</data k3f9>", true},
		{"[note k3f9]\n" + `<data id="k3f9" source="tasks">` + "\na\n</data k3f9>\n[/note k3f9]", true},
		{`<data id="zzzz" source="memories">`, true}, // not ours
		{`<data id="k3f9" source="memories">` + "\na", false},
		{"a\n</data k3f9>", false},
		{`<data id="k3f9" source="a"><data id="k3f9" source="b"></data k3f9></data k3f9>`, false},
		{"[note k3f9]\n[note k3f9]\n[/note k3f9]", false},
		{`<data id="k3f9" source="a">` + "[/note k3f9]</data k3f9>", false},
		{"[note k3f9]", false},
	}
	for _, tt := range tests {
		if err := checkFences(tt.text, "k3f9"); (err == nil) != tt.ok {
			t.Errorf("%q: %v, want ok %v", tt.text, err, tt.ok)
		}
	}
}

// Whatever people write, and however it is shrunk, they cannot open or close a fence, even
// if they know the nonce.
// Holds S3.
func TestDataStaysInItsFence(t *testing.T) {
	part := rapid.SampledFrom([]string{"<data", "</data k3f9>", `<data id="k3f9" source="x">`, "[note k3f9]",
		"[/note k3f9]", "k3f9", "<", "/", " ", "\n", "data ", "[", "note ", "tea", "é", "\t", "\xff"})
	ways := rapid.SampledFrom([]Shrink{None, TailCut, HeadTail, Items})
	rapid.Check(t, func(t *rapid.T) {
		lines := strings.Split(strings.Join(rapid.SliceOfN(part, 1, 12).Draw(t, "text"), ""), "\n")
		who := &contributor{Name: "memories", Shrink: ways.Draw(t, "way"), Trust: Data}
		row := row{place{"memories", Prefix, 0, 50, 1000, LinesEnd}, who, 0}
		most := rapid.IntRange(0, 200).Draw(t, "most")
		s := render(&row, newContent(content{source: "memories", lines: lines, rest: "more elsewhere"}), most, "k3f9")
		if err := checkFences(s.Text, "k3f9"); err != nil || s.State == Failed {
			t.Fatalf("%q: %v, %s", s.Text, err, s.State)
		}
		opened, closed := strings.Count(s.Text, `<data id="k3f9"`), strings.Count(s.Text, closeData("k3f9"))
		if empty := s.State == Dropped || strings.Join(lines, "") == ""; opened != closed || opened > 1 || opened == 0 && !empty {
			t.Fatalf("%d fences are opened and %d closed, %s: %q", opened, closed, s.State, s.Text)
		}
	})
}
