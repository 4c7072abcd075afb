package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Token is one word of a text before stemming.
type Token struct {
	Text    string // folded, with its accents
	Ideo    bool   // characters of a script without spaces, or an emoji; not stemmed
	Capital bool   // it begins with a capital letter
}

// normalise returns the NFKC form of text.
func normalise(text string) string { return norm.NFKC.String(text) }

// Tokens splits text. Joined numbers (17:30, 2023-05-08, 3.5) give a token for the whole and one
// for each part. Scripts without spaces give character bigrams, and Han also single characters.
func Tokens(text string) []Token {
	text = normalise(text)
	out := make([]Token, 0, len(text)/5+1)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case unspaced(r):
			n := runLength(text[i:], unspaced)
			out = appendPairs(out, text[i:i+n])
			i += n
		case isWordRune(r):
			n := wordLength(text[i:])
			out = appendWord(out, text[i:i+n])
			i += n
		case unicode.Is(unicode.So, r):
			out = append(out, Token{Text: "u" + strconv.FormatInt(int64(r), 16), Ideo: true})
			i += size
		default:
			i += size
		}
	}
	return out
}

func isWordRune(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !unspaced(r)
}

// unspaced reports whether r is of a script without spaces between words.
func unspaced(r rune) bool {
	if r < 0x0E00 || !unicode.IsLetter(r) && !unicode.IsMark(r) {
		return false
	}
	return r == 'ー' ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// HasHiragana reports whether s has a letter of the script in which Japanese writes endings and particles.
func HasHiragana(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.Is(unicode.Hiragana, r) }) >= 0
}

func runLength(text string, in func(rune) bool) int {
	for i, r := range text {
		if !in(r) && !unicode.IsMark(r) {
			return i
		}
	}
	return len(text)
}

// wordLength is the length of the word at the start of text: letters, marks and digits, apostrophes
// between letters, and separators between digits.
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

// appendPairs adds the character bigrams of s. It adds Han characters singly too, because one is
// often a word.
func appendPairs(out []Token, s string) []Token {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsMark(r) && !unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			return -1
		}
		return r
	}, s))
	for i, r := range runes {
		if unicode.Is(unicode.Han, r) || len(runes) == 1 {
			out = append(out, Token{Text: string(r), Ideo: true})
		}
		if i+1 < len(runes) {
			out = append(out, Token{Text: string(runes[i : i+2]), Ideo: true})
		}
	}
	return out
}

func appendWord(out []Token, s string) []Token {
	first, _ := utf8.DecodeRuneInString(s)
	if i := strings.IndexAny(s, ".,:-/"); i >= 0 {
		if isDigit(first) {
			return appendNumber(out, s)
		}
		return appendWord(appendWord(out, s[:i]), s[i+1:]) // v1.2
	}
	return append(out, Token{Text: foldWord(s), Capital: unicode.IsUpper(first)})
}

// appendNumber adds a joined number, as a whole and in parts.
func appendNumber(out []Token, s string) []Token {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(".,:-/", r) })
	for i, p := range parts {
		parts[i] = bareNumber(foldWord(p))
	}
	out = append(out, Token{Text: strings.Join(parts, "x")})
	for _, p := range parts {
		out = append(out, Token{Text: p})
	}
	return out
}

// bareNumber strips the zero of 05 and the suffix of 8th.
func bareNumber(s string) string {
	n := 0
	for n < len(s) && isDigit(rune(s[n])) {
		n++
	}
	if n == 0 {
		return s
	}
	switch s[n:] {
	case "st", "nd", "rd", "th":
		s = s[:n]
	}
	if n == len(s) && n == 2 && s[0] == '0' {
		return s[1:]
	}
	return s
}

// foldWord folds case, apostrophes and number forms.
func foldWord(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 { // the same, without a table
		return bareNumber(strings.ToLower(s))
	}
	return bareNumber(plainLetters.Replace(folded.String(s)))
}

var plainLetters = strings.NewReplacer("’", "'", "ʼ", "'", "ё", "е")

// Unaccented strips accents from Latin and Greek letters. In other scripts a mark makes another
// letter.
func Unaccented(s string) string {
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

// DropApostrophes removes apostrophes, which terms cannot contain.
func DropApostrophes(s string) string { return strings.ReplaceAll(s, "'", "") }

// stem is the index term of w in lang.
func stem(w string, lang Language) string { return DropApostrophes(Unaccented(stemIn(lang, w))) }

// Terms returns the index terms of a text with the words ws: the stems in its possible languages,
// then the dates it names.
func Terms(ws []Token) []string {
	langs := Detect(ws)
	terms := make([]string, 0, len(ws))
	for _, w := range ws {
		at := len(terms)
		if w.Ideo || isDigit(rune(w.Text[0])) {
			terms = append(terms, DropApostrophes(w.Text))
			continue
		}
		for _, lang := range langs {
			s := stem(w.Text, lang)
			if s != "" && !slices.Contains(terms[at:], s) {
				terms = append(terms, s)
			}
		}
	}
	return append(terms, DatesIn(ws)...)
}

// Forms returns the terms under which w may be indexed. The language detected for the text does not
// matter.
func Forms(w Token, langs []Language) []string {
	if w.Ideo || isDigit(rune(w.Text[0])) {
		return []string{DropApostrophes(w.Text)}
	}
	var out []string
	add := func(s string) {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, l := range langs {
		add(stem(w.Text, l))
	}
	others := latin
	if r, _ := utf8.DecodeRuneInString(w.Text); r >= 0x400 && r < 0x530 {
		others = cyrillic
	}
	for _, l := range others {
		add(stem(w.Text, l))
	}
	plain := Unaccented(w.Text)
	add(DropApostrophes(plain))
	if plain != w.Text {
		add(stem(plain, langs[0]))
		add(stem(umlauts.Replace(w.Text), langs[0]))
	} else if strings.Contains(plain, "e") {
		if s := digraphs.Replace(plain); s != plain {
			add(stem(s, de))
		}
	}
	return out
}

var (
	umlauts  = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")
	digraphs = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")
)

// Width is the length of text in characters; those of dense scripts count as three.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r >= 0x2E80 && unspaced(r) {
			n += 2
		}
	}
	return n
}

// IsQuestion reports whether text ends with a question mark.
func IsQuestion(text string) bool {
	text = strings.TrimRightFunc(text, func(r rune) bool {
		return !strings.ContainsRune("?？.!。！", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

// NameTerms returns the terms of a name, separated by spaces; of a Matrix id, those of its local
// part.
func NameTerms(subject string) string {
	if rest, ok := strings.CutPrefix(subject, "@"); ok {
		subject, _, _ = strings.Cut(rest, ":")
	}
	var out []string
	for _, w := range Tokens(subject) {
		if t := DropApostrophes(Unaccented(w.Text)); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return strings.Join(out, " ")
}

// FormsIn returns the forms of all words of text.
func FormsIn(text string) map[string]bool {
	ws := Tokens(text)
	langs := Detect(ws)
	out := map[string]bool{}
	for _, w := range ws {
		for _, f := range Forms(w, langs) {
			out[f] = true
		}
	}
	return out
}
