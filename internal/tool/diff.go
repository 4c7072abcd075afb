package tool

import (
	"fmt"
	"strings"
)

const (
	diffContext = 3   // unchanged lines around a change
	diffLines   = 120 // lines shown of a change
)

// diff returns a unified diff of one hunk: all lines from the first to the last that changed.
func diff(path, old, now string) string {
	a, b := splitLines(old), splitLines(now)
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	if first == len(a) && first == len(b) {
		return "(nothing is different)"
	}
	same := 0 // at the end
	for same < len(a)-first && same < len(b)-first && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	begin := max(first-diffContext, 0)
	after := min(same, diffContext)
	var lines []string
	add := func(mark string, part []string) {
		for _, line := range part {
			lines = append(lines, mark+line)
		}
	}
	add(" ", a[begin:first])
	add("-", a[first:len(a)-same])
	add("+", b[first:len(b)-same])
	add(" ", a[len(a)-same:len(a)-same+after])
	head := fmt.Sprintf("--- %s\n+++ %s\n@@ -%s +%s @@\n", path, path, span(begin, len(a)-same+after), span(begin, len(b)-same+after))
	if len(lines) > diffLines {
		more := len(lines) - diffLines
		lines = append(lines[:diffLines:diffLines], fmt.Sprintf("[%d more lines of this change]", more))
	}
	return head + strings.Join(lines, "\n")
}

// span formats the lines from index begin up to end.
func span(begin, end int) string {
	if begin == end { // no line: it stands for the place after line begin
		return fmt.Sprintf("%d,0", begin)
	}
	return fmt.Sprintf("%d,%d", begin+1, end-begin)
}

// splitLines splits a text into lines. A last line without an end gets a mark, as diff has it.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	if rest, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.Split(rest, "\n")
	}
	lines := strings.Split(text, "\n")
	lines[len(lines)-1] += "\n\\ No newline at end of file"
	return lines
}
