package dream

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/text"
)

// persons are of whom a text speaks without a name, a bit for each.
type persons uint8

const (
	firstPerson persons = 1 << iota
	secondPerson
	he
	she
	they
	somebody = he | she | they // whom only what was said before tells
)

// personWords are the words for them. What is of several languages and means another
// thing in one of them (French il, son) is in no list.
var personWords = func() map[string]persons {
	out := map[string]persons{}
	for list, who := range map[string]persons{"first_person": firstPerson, "second_person": secondPerson, "he": he, "she": she, "they": they,
		"she_or_they": she | they, "somebodys": somebody} {
		for w := range text.Set(list) {
			out[w] |= who
		}
	}
	return out
}()

// personSigns are those of languages without spaces: woman before man, as 彼女 begins with 彼.
var personSigns = []struct {
	sign *regexp.Regexp
	who  persons
}{
	{regexp.MustCompile(`我|咱|私|僕|俺`), firstPerson}, {regexp.MustCompile(`你|您|あなた`), secondPerson},
	{regexp.MustCompile(`她|彼女`), she}, {regexp.MustCompile(`[^其]他[^人]|^\s*他|彼(?:[^女]|$)`), he},
}

// personsOf are those in low, lower-case.
func personsOf(low string) (out persons) {
	for _, w := range strings.FieldsFunc(low, func(r rune) bool { return strings.ContainsRune(" .,;:!?()\"", r) }) {
		out |= personWords[w]
	}
	for _, p := range personSigns {
		if p.sign.MatchString(low) {
			out |= p.who
		}
	}
	return out
}

// otherPersons reports whether a and b speak of different persons: of me and of her.
func otherPersons(a, b *signature) bool {
	return a.persons != 0 && b.persons != 0 && a.persons&b.persons == 0
}

// nobody reports whether it cannot be told from either whom it is about: a he, of whom
// neither the text nor its subject has a name.
func nobody(a, b *signature) bool { return a.Subject == "" && (a.persons|b.persons)&somebody != 0 }

// noNames are small words that begin a sentence and are nobody's name there, beside those
// for persons, articles and asides: those of languages that put them before each noun, and
// what stands before a participle.
var noNames = text.Set("no_name")

// smallNames are the names in s that are small words of some language (Sue, Per, Al): at
// the beginning right before a word that next knows, or with a capital letter elsewhere.
func (s *signature) smallNames(next func(token) bool) string {
	var out []string
	for i, t := range s.tokens {
		if !t.small || personWords[t.text] != 0 || articles[t.text] || asides[t.text] || noNames[t.text] {
			continue
		}
		first, size := utf8.DecodeRuneInString(t.text)
		if i == 0 && len(s.tokens) > 1 && !s.tokens[1].after && next(s.tokens[1]) || i > 0 && strings.Contains(s.Text, " "+string(unicode.ToUpper(first))+t.text[size:]) {
			out = append(out, t.text)
		}
	}
	return strings.Join(out, " ")
}
