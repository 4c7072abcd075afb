package skill

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Match returns the skills of which a trigger occurs in text, in upper or lower
// case: the highest priority first, then by name, at most most of them. A
// trigger must stand by itself, not within a longer word; but in scripts that
// put no blanks between words it may stand anywhere.
func Match(skills []Skill, text string, most int) []Skill {
	if most <= 0 || text == "" {
		return nil
	}
	t := index(fold(text))
	var found []Skill
	for _, s := range skills {
		if s.folded != "" && t.hasAny(s.folded) {
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
	t := index(fold(text))
	for _, p := range phrases {
		if t.has(fold(p)) {
			return p
		}
	}
	return ""
}

// indexed is a folded text that says quickly what does not stand in it: most
// triggers of most skills. It has a bit for each three bytes in a row.
type indexed struct {
	text string
	bits [1 << 10]uint64
}

func slot(s string, i int) (word, bit uint32) {
	h := (uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16) * 0x9E3779B1 >> 16
	return h >> 6, h & 63
}

func index(text string) *indexed {
	t := &indexed{text: text}
	for i := 0; i+2 < len(text); i++ {
		word, bit := slot(text, i)
		t.bits[word] |= 1 << bit
	}
	return t
}

// hasAny reports whether one of the folded triggers, a line each, occurs.
func (t *indexed) hasAny(triggers string) bool {
	for trigger := range strings.SplitSeq(triggers, "\n") {
		if t.has(trigger) {
			return true
		}
	}
	return false
}

func (t *indexed) has(trigger string) bool {
	for i := 0; i+2 < len(trigger); i++ {
		if word, bit := slot(trigger, i); t.bits[word]&(1<<bit) == 0 {
			return false
		}
	}
	for at := 0; ; {
		i := strings.Index(t.text[at:], trigger)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(trigger)
		if apart(lastRune(t.text[:begin]), firstRune(trigger)) && apart(firstRune(t.text[end:]), lastRune(trigger)) {
			return true
		}
		_, size := utf8.DecodeRuneInString(trigger)
		at = begin + size
	}
}

// The runes at the ends of a text; 0 = it is empty.
func firstRune(s string) rune {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return 0
	}
	return r
}

func lastRune(s string) rune {
	r, size := utf8.DecodeLastRuneInString(s)
	if size == 0 {
		return 0
	}
	return r
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
	out := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r == ' ' || r >= '\t' && r <= '\r' || r > utf8.RuneSelf && unicode.IsSpace(r):
			if len(out) == 0 || out[len(out)-1] != ' ' {
				out = append(out, ' ')
			}
		case r < utf8.RuneSelf:
			if r >= 'a' && r <= 'z' {
				r -= 'a' - 'A'
			}
			out = append(out, byte(r))
		default:
			out = utf8.AppendRune(out, foldRune(r))
		}
	}
	return string(out)
}

// foldRune is the first of the letters that are r in another case.
func foldRune(r rune) rune {
	first := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		first = min(first, next)
	}
	return first
}
