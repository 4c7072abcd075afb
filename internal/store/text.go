package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/i18n"
)

// CheckLine folds the white space of text and checks it like CheckText; name is used in errors.
func CheckLine(name, text string, limit int) (string, error) {
	return CheckText(name, strings.Join(strings.Fields(text), " "), limit)
}

// CheckText checks a text before it is stored: valid UTF-8, no control characters, at most limit
// characters.
func CheckText(name, text string, limit int) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("%s is not valid UTF-8 text", name)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return "", fmt.Errorf("%s holds the control character %U: leave it out", name, r)
	}
	if n := utf8.RuneCountInString(text); n > limit {
		return "", i18n.New("why.text_long", "name", name, "count", n, "most", limit)
	}
	return text, nil
}

// Problem is a mistake in a file, to be reported to its owner.
type Problem struct {
	File string `json:"file,omitempty"` // relative to the data folder
	Line int    `json:"line,omitempty"`
	Text string `json:"problem"`
}

func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Text
	case p.Line == 0:
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}
