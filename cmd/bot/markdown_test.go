package main

import (
	"regexp"
	"strings"
	"testing"
)

// sgr are the codes for how characters look.
var sgr = regexp.MustCompile("\x1b\\[([0-9]*)m")

// TestMarkdown: each form of Markdown, as a terminal of 30 columns shows it.
func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"words", "a **b** *c* _d_ ~~e~~ `f*g*`", "a {1}b{0} {3}c{0} {3}d{0} {9}e{0} {36}f*g*{0}"},
		{"nested", "**a *b* c**", "{1}a {0}{1}{3}b{0}{1} c{0}"},
		{"no marks", "2 * 3 * 4, snake_case_name, a**b, \\*x\\*", "2 * 3 * 4, snake_case_name,\na**b, *x*"},
		{"heading", "## Big *news* ##", "{1}Big {0}{1}{3}news{0}"},
		{"list", "- one that is longer than one line\n  - two\n10. ten", "• one that is longer than one\n  line\n  • two\n10. ten"},
		{"quote", "> a\n>> b", "{2}│ {0}a\n{2}│ │ {0}b"},
		{"code", "```go\nx  :=  `1` + **2** and more than thirty columns\n```", "{36}  x  :=  `1` + **2** and more than thirty columns{0}"},
		{"blank lines", "\n\na\n\n\n\nb\n\n", "\na\n\nb"},
		{"rule", "a\n---\nb", "a\n{2}──────────────────────────────{0}\nb"},
		{"table", "| a | **b** |\n|:--|--:|\n| ccc | d\\|e |", "a  {2} │ {0}{1}b{0}\n{2}────┼────{0}\nccc{2} │ {0}d|e"},
		{"wide table", "| one column | another column | a third |\n|---|---|---|\n| x | y | z |",
			"one column{2} │ {0}another column{2} │{0}\na third\n{2}───────────┼────────────────┼─{0}\nx{2} │ {0}y{2} │ {0}z"},
		{"wide characters", strings.Repeat("日本", 9), strings.Repeat("日本", 7) + "日\n本日本"},
		{"a long word", strings.Repeat("x", 35) + " y", strings.Repeat("x", 30) + "\nxxxxx y"},
	} {
		got := strings.Join(markdown(c.text, 30, true), "\n")
		if got = sgr.ReplaceAllString(got, "{$1}"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
