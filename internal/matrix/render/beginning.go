package render

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Beginning is what fits of a text into one message that costs at most limit, with a note below.
func Beginning(md string, limit int, note string) string {
	for most := min(len(md), limit); ; most = most * 3 / 4 {
		text := md[:goodEnd(md, most)]
		if open := unclosed(text); open != "" {
			text += "\n" + open
		}
		if text += note; Size(text) <= limit || most == 0 {
			return text
		}
	}
}

// goodEnd is where a beginning of at most so many bytes ends best: with a paragraph, a line, a
// word, or at least a character.
func goodEnd(md string, most int) int {
	for _, border := range []string{"\n\n", "\n", " "} {
		if at := strings.LastIndex(md[:most], border); at > most/2 {
			return at
		}
	}
	for most > 0 && most < len(md) && !utf8.RuneStart(md[most]) {
		most--
	}
	return most
}

var fenceLine = regexp.MustCompile("^(```+|~~~+)([^`]*)$")

// unclosed returns the marker of a fenced block that md ends in. Of a block in a list or a
// quotation it is none, because those end with the next paragraph.
func unclosed(md string) (open string) {
	for line := range strings.Lines(md) {
		m := fenceLine.FindStringSubmatch(line)
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
