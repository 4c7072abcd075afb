package text

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// PlainWords normalises a text for comparison: case, white space and punctuation around words.
// Punctuation inside words and numbers stays (C# is not C), as does the case of codes (Tiger7 is
// not tiger7).
func PlainWords(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		w = strings.Trim(w, `.,;:!…"'“”„«»‘’()。，、！；：`)
		if !strings.ContainsFunc(w, unicode.IsDigit) || !isCode(w) {
			w = strings.ToLower(w)
		}
		words[i] = w
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// WholeWords reports whether want occurs in text at word boundaries. They count as far as its
// script has spaces between words. text and want must be folded.
func WholeWords(text, want string) bool {
	for offset := 0; ; {
		i := strings.Index(text[offset:], want)
		if i < 0 {
			return false
		}
		i += offset
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(want):])
		first, size := utf8.DecodeRuneInString(want)
		last, _ := utf8.DecodeLastRuneInString(want)
		if !(isWordRune(first) && isWordRune(before)) && !(isWordRune(last) && isWordRune(after)) {
			return true
		}
		offset = i + max(1, size)
	}
}

// Hash is equal for texts with the same words. It ignores case, white space, punctuation and
// Unicode composition.
func Hash(text string) string {
	text = folded.String(norm.NFKC.String(text))
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), unicode.IsSymbol(r):
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		default:
			space = true
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:16])
}

var folded = cases.Fold()
