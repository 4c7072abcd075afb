package memory

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/i18n"
)

// maxRunes is the length of the longest text that Add accepts.
const maxRunes = 2000

// clean makes one line of text, as an entry stores it. The error is an i18n.Text that says why the
// text is refused.
func clean(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", i18n.New("why.memory_utf8")
	}
	// A byte order mark is invisible and would vanish at the start of a file.
	text = strings.ReplaceAll(text, "\uFEFF", "")
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "", i18n.New("why.memory_empty")
	}
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return "", i18n.New("why.memory_control", "character", fmt.Sprintf("%U", r))
	}
	if n := utf8.RuneCountInString(text); n > maxRunes {
		return "", i18n.New("why.memory_long", "count", n, "most", maxRunes)
	}
	return text, nil
}

// fold normalises case and white space, for comparisons.
func fold(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}
