package skill

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// Match returns the skills of which a trigger occurs in text, in upper or lower
// case: the highest priority first, then by name, at most most of them. A
// trigger must stand by itself, not within a longer word; but in scripts that
// put no blanks between words it may stand anywhere.
func Match(skills []Skill, text string, most int) []Skill {
	text = fold(text)
	var found []Skill
	for _, s := range skills {
		if s.triggers != "" && slices.ContainsFunc(strings.Split(s.triggers, "\n"), func(t string) bool { return stands(t, text) }) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return found[:min(len(found), most)]
}

// Said returns the first of the phrases that occurs in text, as Match compares them;
// "" = none.
func Said(text string, phrases []string) string {
	text = fold(text)
	for _, p := range phrases {
		if stands(fold(p), text) {
			return p
		}
	}
	return ""
}

// stands reports whether a trigger stands in text by itself, both folded.
func stands(trigger, text string) bool {
	first, size := utf8.DecodeRuneInString(trigger)
	last, _ := utf8.DecodeLastRuneInString(trigger)
	for at := 0; ; {
		i := strings.Index(text[at:], trigger)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at+i])
		after, _ := utf8.DecodeRuneInString(text[at+i+len(trigger):])
		if apart(before, first) && apart(after, last) {
			return true
		}
		at += i + size
	}
}

// apart reports whether a trigger that begins or ends with edge is not one word
// with what stands beside it.
func apart(beside, edge rune) bool {
	return !inWord(beside) || !inWord(edge) || unspaced(beside) || unspaced(edge)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// unspaced are the scripts whose words touch each other, or in Korean their
// endings.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan) || r == 'ー'
}

// fold makes texts that differ in case or in their blanks the same.
func fold(text string) string {
	return cases.Fold().String(strings.Join(strings.Fields(text), " "))
}
