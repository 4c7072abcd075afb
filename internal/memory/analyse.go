package memory

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The analyser makes terms of text: what the indexes store and what a question
// looks for. A term consists of letters and digits only. Everything is
// deterministic, so that an index can be checked by making it again.

// word is one word of a text, before it is stemmed.
type word struct {
	text    string // folded, with its accents
	ideo    bool   // a piece of a script without spaces: it is a term as it stands
	capital bool   // it began with a capital letter
}

// normalise brings letters that mean the same into one form.
func normalise(text string) string { return norm.NFKC.String(text) }

// words splits text. Numbers stay whole with what joins their parts (17:30,
// 2023-05-08, 3.5) and are there in parts as well; scripts without spaces
// between words give pairs of characters, Han single characters too.
func words(text string) []word {
	text = normalise(text)
	out := make([]word, 0, len(text)/5+1)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case spaceless(r):
			n := runLength(text[i:], spaceless)
			out = appendPairs(out, text[i:i+n])
			i += n
		case isWordRune(r):
			n := wordLength(text[i:])
			out = appendWord(out, text[i:i+n])
			i += n
		case unicode.Is(unicode.So, r):
			out = append(out, word{text: "u" + strconv.FormatInt(int64(r), 16), ideo: true})
			i += size
		default:
			i += size
		}
	}
	return out
}

func isWordRune(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !spaceless(r)
}

// spaceless tells the scripts that are written without spaces between words.
func spaceless(r rune) bool {
	if r < 0x0E00 || !unicode.IsLetter(r) && !unicode.IsMark(r) {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

func runLength(text string, in func(rune) bool) int {
	for i, r := range text {
		if !in(r) && !unicode.IsMark(r) {
			return i
		}
	}
	return len(text)
}

// wordLength is the length of the word at the start of text: letters, marks and
// digits, with an apostrophe between letters, and what joins numbers.
func wordLength(text string) int {
	var before rune
	for i, r := range text {
		switch {
		case isWordRune(r) || unicode.IsMark(r):
		case isApostrophe(r) && unicode.IsLetter(before) && nextIs(text[i+utf8.RuneLen(r):], unicode.IsLetter):
		case strings.ContainsRune(".,:-/", r) && isDigit(before) && nextIs(text[i+1:], isDigit):
		default:
			return i
		}
		before = r
	}
	return len(text)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' }
func isDigit(r rune) bool      { return r >= '0' && r <= '9' }

func nextIs(text string, is func(rune) bool) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return is(r)
}

// appendPairs adds the pairs of characters of s, and Han characters alone: one
// of them is often a word.
func appendPairs(out []word, s string) []word {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsMark(r) && !unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			return -1
		}
		return r
	}, s))
	for i, r := range runes {
		if unicode.Is(unicode.Han, r) || len(runes) == 1 {
			out = append(out, word{text: string(r), ideo: true})
		}
		if i+1 < len(runes) {
			out = append(out, word{text: string(runes[i : i+2]), ideo: true})
		}
	}
	return out
}

func appendWord(out []word, s string) []word {
	first, _ := utf8.DecodeRuneInString(s)
	if i := strings.IndexAny(s, ".,:-/"); i >= 0 {
		if isDigit(first) {
			return appendNumber(out, s)
		}
		return appendWord(appendWord(out, s[:i]), s[i+1:]) // v1.2
	}
	return append(out, word{text: foldWord(s), capital: unicode.IsUpper(first)})
}

// appendNumber adds a number with joined parts, as one term and in parts.
func appendNumber(out []word, s string) []word {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(".,:-/", r) })
	for i, p := range parts {
		parts[i] = bareNumber(foldWord(p))
	}
	out = append(out, word{text: strings.Join(parts, "x")})
	for _, p := range parts {
		out = append(out, word{text: p})
	}
	return out
}

// bareNumber takes the zero from 05, and the ending from 8th.
func bareNumber(s string) string {
	n := 0
	for n < len(s) && isDigit(rune(s[n])) {
		n++
	}
	if n == 0 {
		return s
	}
	if rest := s[n:]; rest != "" && (rest == "st" || rest == "nd" || rest == "rd" || rest == "th") {
		s = s[:n]
	}
	if n == len(s) && n == 2 && s[0] == '0' {
		return s[1:]
	}
	return s
}

// foldWord is s in the letters that are compared: no case, one apostrophe.
func foldWord(s string) string {
	return bareNumber(plainLetters.Replace(folded.String(s)))
}

var plainLetters = strings.NewReplacer("’", "'", "ʼ", "'", "ё", "е")

// unaccented takes the accents from Latin and Greek letters; elsewhere a mark
// makes another letter.
func unaccented(s string) string {
	var b strings.Builder
	base := false
	for _, r := range norm.NFD.String(s) {
		if unicode.IsMark(r) && base {
			continue
		}
		base = unicode.In(r, unicode.Latin, unicode.Greek)
		switch r {
		case 'ø':
			r = 'o'
		case 'ł':
			r = 'l'
		case 'ı':
			r = 'i'
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

// bare is what of s can be a term.
func bare(s string) string { return strings.ReplaceAll(s, "'", "") }

// analyser remembers the stems of words it met. It is safe for concurrent use.
type analyser struct {
	mu    sync.Mutex
	stems map[stemKey]string
}

type stemKey struct {
	lang language
	word string
}

// maxStems bounds what an analyser remembers.
const maxStems = 1 << 16

// stem is the term that w stands for in lang.
func (a *analyser) stem(w string, lang language) string {
	key := stemKey{lang, w}
	a.mu.Lock()
	s, ok := a.stems[key]
	a.mu.Unlock()
	if ok {
		return s
	}
	s = bare(unaccented(stemIn(lang, w)))
	a.mu.Lock()
	if a.stems == nil || len(a.stems) >= maxStems {
		a.stems = map[stemKey]string{}
	}
	key.word = strings.Clone(w) // not the whole text that it is part of
	a.stems[key] = s
	a.mu.Unlock()
	return s
}

// terms are what a text of the words ws is found by: each one's stem, in the
// language of the text; where that cannot be told, the stems of all it may be.
// The dates it names come last.
func (a *analyser) terms(ws []word) []string {
	langs := detect(ws)
	terms := make([]string, 0, len(ws))
	for _, w := range ws {
		at := len(terms)
		if w.ideo || isDigit(rune(w.text[0])) {
			terms = append(terms, bare(w.text))
			continue
		}
		for _, lang := range langs {
			s := a.stem(w.text, lang)
			if s != "" && !slices.Contains(terms[at:], s) {
				terms = append(terms, s)
			}
		}
	}
	return append(terms, datesIn(ws)...)
}
