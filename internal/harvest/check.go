package harvest

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/text"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A fact is believed as far as the person's own words bear it out. One that is refused wrongly
// is still found in what was said; one that is taken in wrongly is believed for years.

// word is a word, folded, as far as it matters here.
type word struct {
	text    string
	capital bool // it is written with a capital letter
	first   bool // in its sentence
}

var fold = cases.Fold()

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// wordRE is a word: one that ends in n't, one with a number, which keeps what is between its digits, or
// any other.
var wordRE = regexp.MustCompile(`(?i)[\pL\pN\pM]*n't|[\pL\pN\pM]*\p{Nd}(?:[.,:/-]\p{Nd}[\pL\pN\pM]*)*[\pL\pN\pM]*|[\pL\pN\pM]+`)

// wordsOf are the words of text. An apostrophe ends a word, but for that of a negation.
func wordsOf(text string) []word {
	text = strings.ReplaceAll(norm.NFKC.String(text), "’", "'")
	var out []word
	end := 0
	for _, at := range wordRE.FindAllStringIndex(text, -1) {
		w := fold.String(text[at[0]:at[1]])
		initial, _ := utf8.DecodeRuneInString(text[at[0]:])
		out = append(out, word{text: cmp.Or(numerals[w], w), capital: unicode.IsUpper(initial),
			first: end == 0 || strings.ContainsAny(text[end:at[0]], ".!?:\n。！？")})
		end = at[1]
	}
	return out
}

// numerals are the digits of the small numbers that people write in words.
var numerals = func() map[string]string {
	all := map[string]string{}
	for _, language := range []string{"en", "de"} {
		for i, w := range text.Words(language, "numeral") {
			all[w] = strconv.Itoa(i + 2)
		}
	}
	return all
}()

// Words that say nothing by themselves. isSelf are those for the one who speaks, isI those in the first person.
var isSelf, isI, isFunction, isNegation = text.Set("speaker"), text.Set("first_person"), text.Set("function"), text.Set("negation")

// namesOf are the words by which a fact may name who said it.
func namesOf(sender string) []string {
	names := make([]string, 0, 4)
	for _, w := range wordsOf(sender) {
		names = append(names, w.text)
	}
	return append(names, fold.String(ShortName(sender)))
}

// ShortName is a Matrix id without its server, for sentences.
func ShortName(sender string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(sender, "@"), ":")
	return name
}

// contentWords are the words of text that say something, without the names of who said it.
func contentWords(text string, names []string) []word {
	return slices.DeleteFunc(wordsOf(text), func(w word) bool {
		return isFunction[w.text] || isSelf[w.text] || slices.Contains(names, w.text)
	})
}

// saidIn reports whether one of words is w, or another form of it.
func saidIn(w string, words []word) bool {
	return slices.ContainsFunc(words, func(o word) bool { return w == o.text || sameStem(w, o.text) })
}

// sameStem reports whether two words begin alike for long enough. Numbers never do.
func sameStem(a, b string) bool {
	if withDigit(a) || withDigit(b) {
		return false
	}
	x, y := []rune(a), []rune(b)
	if wide(a) || wide(b) { // a run of characters without spaces: the shorter stands in the longer, or most of it
		return strings.Contains(b, a) || sharedRunes(x, y)
	}
	if min(len(x), len(y)) < 3 {
		return false
	}
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n >= 3 && n*10 >= max(len(x), len(y))*6
}

func withDigit(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) }

// wide reports whether w is of a script that has no spaces between words.
func wide(w string) bool {
	return strings.ContainsFunc(w, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Khmer, unicode.Lao, unicode.Myanmar)
	})
}

// sharedRunes reports whether most of x stands in y too.
func sharedRunes(x, y []rune) bool {
	n := 0
	for _, r := range x {
		if strings.ContainsRune(string(y), r) {
			n++
		}
	}
	return n*10 >= len(x)*7
}

// grounded says why the words of a message do not bear a fact out, or "". near is what
// stands around its quote, asked the question that the message may answer.
func grounded(fact, quote, near, asked string, names []string) string {
	said, question := wordsOf(near), wordsOf(asked)
	content := contentWords(fact, names)
	own, all := 0, 0
	firstGood := true
	for _, w := range content {
		if isNegation[w.text] || strings.HasSuffix(w.text, "n't") {
			continue
		}
		all++
		here := saidIn(w.text, said)
		if withDigit(w.text) || w.capital && !w.first {
			if !exactly(w.text, said) {
				return refusedInvented
			}
			here = true
		}
		if w.first {
			firstGood = firstGood && here
		}
		if here || saidIn(w.text, question) {
			own++
		}
	}
	if all == 0 || !answers(content, said) && !answers(wordsOf(quote), content) {
		return refusedLoose
	}
	if own*2 < all || own*2 == all && !firstGood {
		return refusedLoose
	}
	if negated(fact) != negated(clauses(quote, content)) {
		return refusedTurned
	}
	return ""
}

// exactly reports whether a name or number stands in words: as it is, or a name with
// what its language puts at its end.
func exactly(w string, words []word) bool {
	for _, o := range words {
		short, long := min(len(w), len(o.text)), max(len(w), len(o.text))
		begins := strings.HasPrefix(o.text, w) || strings.HasPrefix(w, o.text)
		if o.text == w || !withDigit(w) && begins && short >= 3 && long-short <= 2 {
			return true
		}
		if wide(w) && strings.Contains(o.text, w) {
			return true
		}
	}
	return false
}

// answers reports whether one of content stands in said.
func answers(content, said []word) bool {
	return slices.ContainsFunc(content, func(w word) bool { return saidIn(w.text, said) })
}

var clauseEnd = regexp.MustCompile(`(?i)[.,;!?:\n。，；！？]+|\s+(?:but|and|aber|und|sondern|mais|et|pero|ma)\s+`)

// clauses are those parts of a quote that a fact is made of. If none is, it is all of it.
func clauses(quote string, content []word) string {
	var of []string
	for _, c := range clauseEnd.Split(quote, -1) {
		if answers(content, wordsOf(c)) {
			of = append(of, c)
		}
	}
	if len(of) == 0 {
		return quote
	}
	return strings.Join(of, ". ")
}

// negated reports whether text says that something is not so.
func negated(text string) bool {
	return slices.ContainsFunc(wordsOf(text), func(w word) bool {
		return isNegation[w.text] || strings.HasSuffix(w.text, "n't") || strings.HasSuffix(w.text, "ない") ||
			wide(w.text) && strings.ContainsAny(w.text, "不没")
	})
}

// saysI reports whether a fact is told in the first person.
func saysI(fact string) bool {
	return slices.ContainsFunc(wordsOf(fact), func(w word) bool { return isI[w.text] })
}
