package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes what has no place in a text that a model reads: control
// characters, and those that nobody sees or that make text run backwards.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), invisible(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	return strings.TrimSpace(s)
}

// Clip cuts s to at most n runes.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}

// hidden tells whether a character is one that nobody sees. Joiners stay, because scripts and emoji are
// spelled with them.
func invisible(r rune) bool {
	switch {
	case r == '\u200c' || r == '\u200d': // joiners
		return false
	case r >= 0xe0000 && r <= 0xe0fff: // tags and selectors: a message within a message
		return true
	case r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0': // fillers
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
