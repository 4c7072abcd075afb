package render

import (
	"strings"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
)

// Truncate returns the longest beginning of a text that fits. Its Size with a note below is at most
// limit.
func Truncate(md string, limit int, note string) string {
	for n := min(len(md), limit); ; n = n * 3 / 4 {
		text := md[:cutPoint(md, n)]
		if open := openFence(text); open != "" {
			text += "\n" + open
		}
		if text += note; Size(text) <= limit || n == 0 {
			return text
		}
	}
}

// cutPoint returns where to cut md within its first n bytes: after a paragraph, a line, a word, or
// at least a character.
func cutPoint(md string, n int) int {
	for _, border := range []string{"\n\n", "\n", " "} {
		if at := strings.LastIndex(md[:n], border); at > n/2 {
			return at
		}
	}
	for n > 0 && n < len(md) && !utf8.RuneStart(md[n]) {
		n--
	}
	return n
}

var fenceLine = lazyregexp.New("^(```+|~~~+)([^`]*)$")

// openFence returns the marker of a fenced code block that md ends in, or "". Blocks in lists and
// quotes do not count: they end with the next paragraph.
func openFence(md string) (open string) {
	for line := range strings.Lines(md) {
		m := fenceLine().FindStringSubmatch(line)
		switch {
		case m == nil:
		case open == "":
			open = m[1]
		case strings.HasPrefix(m[1], open) && strings.TrimSpace(m[2]) == "":
			open = ""
		}
	}
	return open
}
