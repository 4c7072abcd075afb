package memory

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/i18n"
)

// maxRunes is the longest entry Append takes.
const maxRunes = 2000

var bom = []byte("\xef\xbb\xbf")

// show is the text of one line, or "" for a comment or a blank line. What people
// leave in such files is taken as it comes: bytes that are no text stay in the
// file and are shown replaced.
func show(line []byte) string {
	text := trim(strings.ToValidUTF8(string(line), "\uFFFD"))
	if text == "" || text[0] == '#' {
		return ""
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = trim(strings.Map(func(r rune) rune {
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

// trim takes white space off both ends, and marks of the byte order, which cannot
// be seen, off the beginning.
func trim(text string) string {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' })
	return strings.TrimRightFunc(text, unicode.IsSpace)
}

// An entry that begins with "#" would read as a comment, so it is written with a
// backslash in front; one that begins with backslashes and "#" gets one more.
func isEscaped(text string) bool {
	rest := strings.TrimLeft(text, `\`)
	return len(rest) < len(text) && strings.HasPrefix(rest, "#")
}

func toLine(text string) string {
	if strings.HasPrefix(text, "#") || isEscaped(text) {
		return `\` + text
	}
	return text
}

// TextError says why a text cannot be an entry, to whoever wrote it.
type TextError struct{ Why i18n.Text }

func (e *TextError) Error() string { return e.Why.String() }

func textError(key string, fill ...any) error { return &TextError{i18n.New(key, fill...)} }

// clean makes one line of text as an entry is stored, or says in a TextError why
// it cannot be one.
func clean(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", textError("why.memory_utf8")
	}
	// A byte order mark is invisible and would vanish at the start of a file.
	text = strings.ReplaceAll(text, "\uFEFF", "")
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "", textError("why.memory_empty")
	}
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return "", textError("why.memory_control", "character", fmt.Sprintf("%U", r))
	}
	if n := utf8.RuneCountInString(text); n > maxRunes {
		return "", textError("why.memory_long", "count", n, "most", maxRunes)
	}
	return text, nil
}

// fold is what duplicates have in common.
func fold(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}

// withLine is data with line added at its end, in the style of the file: its
// line ending, and a newline before if the last line has none.
func withLine(data []byte, line string) []byte {
	end := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		end = "\r\n"
	}
	out := make([]byte, 0, len(data)+len(line)+2*len(end))
	out = append(out, data...)
	if n := len(bytes.TrimPrefix(data, bom)); n > 0 && data[len(data)-1] != '\n' && data[len(data)-1] != '\r' {
		out = append(out, end...)
	}
	out = append(out, line...)
	return append(out, end...)
}
