package task

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/text"

	"golang.org/x/text/width"
)

// minEvidence is how long a reason must be, a wide character counting twice.
const minEvidence = 10

// empty are words that say no more than that a task is completed.
var empty = text.All("says_done")

var errEvidence = errors.New("the reason says no more than that it is done: give what shows it, in a sentence, " +
	`for example "Anna wrote that the plants are watered"`)

// Evidence refuses a reason that does not say what shows that the task content is
// completed.
func Evidence(reason, content string) error {
	size := 0
	for _, r := range strings.Join(strings.Fields(reason), " ") {
		size++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			size++
		}
	}
	if size < minEvidence {
		return errEvidence
	}
	known := append(words(content), empty...)
	slices.SortStableFunc(known, func(a, b string) int { return len(b) - len(a) }) // 完了 before 了
	for _, w := range words(reason) {
		if slices.Contains(known, w) {
			continue
		}
		if !spaced(w) { // there are no spaces between words
			for _, k := range known {
				if !spaced(k) {
					w = strings.ReplaceAll(w, k, "")
				}
			}
		}
		if w != "" {
			return nil
		}
	}
	return errEvidence
}

// words are the words of text, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

// spaced reports whether w is of a script that puts spaces between words.
func spaced(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) })
}
