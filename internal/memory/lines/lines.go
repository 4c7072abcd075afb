// Package lines reads and changes text files that hold an entry a line and that people edit. It only computes.
package lines

import (
	"bytes"
	"strings"
	"unicode"
)

// BOM is the byte order mark that some editors put before a text.
var BOM = []byte("\xef\xbb\xbf")

// Text is the text of one line, or "" for a comment or a blank line. What people
// leave in such files is taken as it comes: bytes that are no text stay in the
// file and are shown replaced.
func Text(line []byte) string {
	text := Trim(strings.ToValidUTF8(string(line), "\uFFFD"))
	if text == "" || text[0] == '#' {
		return ""
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = Trim(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, text))
	}
	if isEscaped(text) {
		text = text[1:]
	}
	return text
}

// Trim takes white space off both ends, and marks of the byte order, which cannot
// be seen, off the beginning.
func Trim(text string) string {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' })
	return strings.TrimRightFunc(text, unicode.IsSpace)
}

// isEscaped reports whether a backslash stands before what would read as a comment. An entry that
// begins with "#" is written with one in front; one that begins with backslashes and "#" gets one more.
func isEscaped(text string) bool {
	rest := strings.TrimLeft(text, `\`)
	return len(rest) < len(text) && strings.HasPrefix(rest, "#")
}

// Of is the line that says text.
func Of(text string) string {
	if strings.HasPrefix(text, "#") || isEscaped(text) {
		return `\` + text
	}
	return text
}

// With is data with line added at its end, in the style of the file: its
// line ending, and a newline before if the last line has none.
func With(data []byte, line string) []byte {
	end := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		end = "\r\n"
	}
	out := make([]byte, 0, len(data)+len(line)+2*len(end))
	out = append(out, data...)
	if n := len(bytes.TrimPrefix(data, BOM)); n > 0 && data[len(data)-1] != '\n' && data[len(data)-1] != '\r' {
		out = append(out, end...)
	}
	out = append(out, line...)
	return append(out, end...)
}
