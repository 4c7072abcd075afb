package harvest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/lazyregexp"
	"reverie/internal/text"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A fact must be supported by the person's own words. A wrongly refused fact is still found in the
// transcript; a wrongly accepted one misleads for years.

// word is a case-folded word.
type word struct {
	text    string
	capital bool // starts with a capital letter
	first   bool // starts a sentence
}

var fold = cases.Fold()

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// wordRE matches a word: one ending in n't, a number with its inner punctuation, or any other.
var wordRE = lazyregexp.New(`(?i)[\pL\pN\pM]*n't|[\pL\pN\pM]*\p{Nd}(?:[.,:/-]\p{Nd}[\pL\pN\pM]*)*[\pL\pN\pM]*|[\pL\pN\pM]+`)

// wordsOf splits text into words. An apostrophe ends a word, except in a negation.
func wordsOf(text string) []word {
	text = strings.ReplaceAll(norm.NFKC.String(text), "’", "'")
	var out []word
	end := 0
	for _, at := range wordRE().FindAllStringIndex(text, -1) {
		w := fold.String(text[at[0]:at[1]])
		initial, _ := utf8.DecodeRuneInString(text[at[0]:])
		out = append(out, word{text: cmp.Or(numerals[w], w), capital: unicode.IsUpper(initial),
			first: end == 0 || strings.ContainsAny(text[end:at[0]], ".!?:\n。！？")})
		end = at[1]
	}
	return out
}

// numerals maps small numbers in words to digits.
var numerals = func() map[string]string {
	all := map[string]string{}
	for _, language := range []string{"en", "de"} {
		for i, w := range text.Words(language, "numeral") {
			all[w] = strconv.Itoa(i + 2)
		}
	}
	return all
}()

// Word lists. isSpeaker holds words for the speaker, isFirstPerson those in the first person.
var (
	isSpeaker, isFirstPerson = text.Set("speaker"), text.Set("first_person")
	isFunction, isNegation   = text.Set("function"), text.Set("negation")
)

// senderNames returns the words by which a fact may name its sender.
func senderNames(sender string) []string {
	names := make([]string, 0, 4)
	for _, w := range wordsOf(sender) {
		names = append(names, w.text)
	}
	return append(names, fold.String(chat.ShortName(sender)))
}

// contentWords returns the words of text without function words and the sender's names.
func contentWords(text string, names []string) []word {
	return slices.DeleteFunc(wordsOf(text), func(w word) bool {
		return isFunction[w.text] || isSpeaker[w.text] || slices.Contains(names, w.text)
	})
}

// containsForm reports whether words has w or another form of it.
func containsForm(w string, words []word) bool {
	return slices.ContainsFunc(words, func(o word) bool { return w == o.text || sameStem(w, o.text) })
}

// sameStem reports whether two words share a long enough prefix. Numbers never do.
func sameStem(a, b string) bool {
	if hasDigit(a) || hasDigit(b) {
		return false
	}
	x, y := []rune(a), []rune(b)
	if isUnspaced(a) || isUnspaced(b) { // no spaces: one contains the other, or most of its characters
		return strings.Contains(b, a) || mostRunesShared(x, y)
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

func hasDigit(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) }

// isUnspaced reports whether the script of w has no spaces between words.
func isUnspaced(w string) bool {
	return strings.ContainsFunc(w, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Khmer, unicode.Lao, unicode.Myanmar)
	})
}

func mostRunesShared(x, y []rune) bool {
	n := 0
	for _, r := range x {
		if strings.ContainsRune(string(y), r) {
			n++
		}
	}
	return n*10 >= len(x)*7
}

// checkGrounding returns why a message does not support a fact, or "". context is the text around
// the quote, question what the message may answer.
func checkGrounding(fact, quote, context, question string, names []string) string {
	messageWords, questionWords := wordsOf(context), wordsOf(question)
	content := contentWords(fact, names)
	supported, total := 0, 0
	firstSupported := true
	for _, w := range content {
		if isNegation[w.text] || strings.HasSuffix(w.text, "n't") {
			continue
		}
		total++
		inMessage := containsForm(w.text, messageWords)
		if hasDigit(w.text) || w.capital && !w.first {
			if !containsNameOrNumber(w.text, messageWords) {
				return refusedInvented
			}
			inMessage = true
		}
		if w.first {
			firstSupported = firstSupported && inMessage
		}
		if inMessage || containsForm(w.text, questionWords) {
			supported++
		}
	}
	if total == 0 || !shareWord(content, messageWords) && !shareWord(wordsOf(quote), content) {
		return refusedUngrounded
	}
	if supported*2 < total || supported*2 == total && !firstSupported {
		return refusedUngrounded
	}
	if negated(fact) != negated(relevantClauses(quote, content)) {
		return refusedNegation
	}
	return ""
}

// containsNameOrNumber reports whether words has the name or number w. A name may have a short inflection.
func containsNameOrNumber(w string, words []word) bool {
	for _, o := range words {
		short, long := min(len(w), len(o.text)), max(len(w), len(o.text))
		begins := strings.HasPrefix(o.text, w) || strings.HasPrefix(w, o.text)
		if o.text == w || !hasDigit(w) && begins && short >= 3 && long-short <= 2 {
			return true
		}
		if isUnspaced(w) && strings.Contains(o.text, w) {
			return true
		}
	}
	return false
}

func shareWord(content, said []word) bool {
	return slices.ContainsFunc(content, func(w word) bool { return containsForm(w.text, said) })
}

var clauseEnd = lazyregexp.New(`(?i)[.,;!?:\n。，；！？]+|\s+(?:but|and|aber|und|sondern|mais|et|pero|ma)\s+`)

// relevantClauses returns the clauses of a quote that share a word with content. Without such
// clauses it returns the whole quote.
func relevantClauses(quote string, content []word) string {
	var relevant []string
	for _, c := range clauseEnd().Split(quote, -1) {
		if shareWord(content, wordsOf(c)) {
			relevant = append(relevant, c)
		}
	}
	if len(relevant) == 0 {
		return quote
	}
	return strings.Join(relevant, ". ")
}

func negated(text string) bool {
	return slices.ContainsFunc(wordsOf(text), func(w word) bool {
		return isNegation[w.text] || strings.HasSuffix(w.text, "n't") || strings.HasSuffix(w.text, "ない") ||
			isUnspaced(w.text) && strings.ContainsAny(w.text, "不没")
	})
}
