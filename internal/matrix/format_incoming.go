package matrix

import "unicode"

// hidden tells whether a character of a person's text is one that nobody sees:
// it has no place in what a model reads. Joiners stay, because scripts and emoji
// are spelled with them.
func hidden(r rune) bool {
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
