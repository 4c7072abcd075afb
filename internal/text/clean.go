package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes control characters, invisible characters and bidirectional marks from a text for
// the model.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), invisible(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	return strings.TrimSpace(s)
}

// Clip truncates s to n runes and appends "…". So the result has up to n+1 runes; compare Cut.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}

// invisible reports whether a character is invisible. Joiners are not counted, because scripts and
// emoji need them.
func invisible(r rune) bool {
	switch {
	case r == '\u200c' || r == '\u200d': // joiners
		return false
	case r >= 0xe0000 && r <= 0xe0fff: // tags and selectors can hide a message
		return true
	case r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0': // fillers
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// Cut truncates a text to limit characters, with "…" as the last one.
func Cut(text string, limit int) string {
	if len(text) <= limit { // each character is one byte or more
		return text
	}
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
