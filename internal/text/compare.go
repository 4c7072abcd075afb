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

// PlainWords is a text without what makes no difference: case, white space, and
// the punctuation around words. That inside of a word or of a number does: C#
// is not C. So does the case of a code: Tiger7 opens what tiger7 does not.
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

// WholeWords reports whether want stands in text and neither begins nor ends within a word,
// as far as its script has spaces between words. Both are folded already.
func WholeWords(text, want string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], want)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(want):])
		first, size := utf8.DecodeRuneInString(want)
		last, _ := utf8.DecodeLastRuneInString(want)
		if !(isWordRune(first) && isWordRune(before)) && !(isWordRune(last) && isWordRune(after)) {
			return true
		}
		at = i + max(1, size)
	}
}

// Hash is equal for texts that say the same in the same words: case, white
// space, punctuation and the way letters are composed make no difference.
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
