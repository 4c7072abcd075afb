// Package lines parses and edits text files with one entry per line. It does no I/O.
package lines

import (
	"bytes"
	"strings"
	"unicode"
)

// BOM is the UTF-8 byte order mark that some editors write.
var BOM = []byte("\xef\xbb\xbf")

// Text returns the text of one line. For a comment or a blank line it returns "". Invalid UTF-8 and
// control characters are replaced in the result; the file keeps them.
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

// Trim removes white space from both ends, and byte order marks from the beginning.
func Trim(text string) string {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' })
	return strings.TrimRightFunc(text, unicode.IsSpace)
}

// isEscaped reports whether text begins with backslashes and "#". Escape adds one backslash to an
// entry that begins with "#" or is escaped already.
func isEscaped(text string) bool {
	rest := strings.TrimLeft(text, `\`)
	return len(rest) < len(text) && strings.HasPrefix(rest, "#")
}

// Escape returns the line that stands for text.
func Escape(text string) string {
	if strings.HasPrefix(text, "#") || isEscaped(text) {
		return `\` + text
	}
	return text
}

// AppendLine returns data with line appended, in the file's style: with its line ending, and after
// a newline if the last line has none.
func appendLine(data []byte, line string) []byte {
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
