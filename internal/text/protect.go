package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
)

// Word is one word of a text, for comparing texts.
type Word struct {
	Text  string   // case-folded and normalised
	Stems []string // possible stems in all languages; the first is the likeliest
	Stop  bool     // a stop word
	Name  bool     // a number, or capitalised and not a stop word
}

// WordsOf returns the words of text, in order.
func WordsOf(text string) []Word {
	ws := Tokens(text)
	langs := Detect(ws)
	out := make([]Word, len(ws))
	for i, w := range ws {
		small := IsStopWord(w, langs) && (w.Text != "mia" || isItalianMia(ws, i))
		out[i] = Word{Text: w.Text, Stems: Forms(w, langs), Stop: small,
			Name: strings.ContainsFunc(w.Text, unicode.IsDigit) && !w.Ideo || w.Capital && !small}
	}
	return out
}

// isItalianMia reports whether the i-th word, "mia", is the Italian pronoun. Otherwise it is the
// name Mia.
func isItalianMia(ws []Token, i int) bool {
	return i > 0 && beforeMine[ws[i-1].Text] || i+1 < len(ws) && afterMine[ws[i+1].Text]
}

var (
	beforeMine = foldedSet("before_mine")
	afterMine  = foldedSet("after_mine")
)

var (
	addresses = lazyregexp.New(`(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>"“”„]+` +
		`|[\p{L}\p{N}._%+-]+@[\p{L}\p{N}.-]+\.\p{L}{2,}` +
		`|[@!#][\p{L}\p{N}._=/-]+:[\p{L}\p{N}.-]+`)
	quotes = lazyregexp.New(`"([^"]{1,200})"|“([^“”"]{1,200})[”"]|„([^„“”"]{1,200})[“”"]` +
		`|«([^«»]{1,200})»|»([^«»]{1,200})«|「([^「」]{1,200})」`)
	amounts = lazyregexp.New(`([-−+]?)(\d+(?:[.,:]\d+)*)\s*(°\s?[cf]|[%‰€$£¥]` +
		`|(?:kg|mg|µg|g|km|cm|mm|m|ml|cl|l|kb|mb|gb|tb|kwh|kw|w|v|ms|s|sec|min|h|am|pm|uhr` +
		`|euros?|eur|dollars?|usd|chf|days?|weeks?|months?|years?|tage?n?|wochen?|monate?n?|jahre?n?)\b)`)
	prices = lazyregexp.New(`([€$£¥])\s*(\d+(?:[.,:]\d+)*)`)
	signed = lazyregexp.New(`(?:^|\s)([-−+]\d+(?:[.,:]\d+)*)`)
	mixed  = lazyregexp.New(`[\p{L}\p{N}][\p{L}\p{N}_.+#/-]*`)
)

// Protected lists the parts of text in which a small difference changes the fact: numbers with
// units and signs, dates and times, codes (case-sensitive), mail and web addresses, names, and
// quotations. The result is normalised, sorted and without duplicates. In languages that capitalise
// nouns, all nouns are protected.
func Protected(text string) []string {
	text = normalise(text)
	var out []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	for _, a := range addresses().FindAllString(text, -1) {
		add(folded.String(strings.TrimRight(a, ".,;:!?)")))
	}
	for _, m := range quotes().FindAllStringSubmatch(text, -1) {
		add(`"` + folded.String(strings.Join(strings.Fields(strings.Join(m[1:], "")), " ")) + `"`)
	}
	low := folded.String(text)
	for _, m := range amounts().FindAllStringSubmatch(low, -1) {
		add(m[2] + strings.ReplaceAll(m[3], " ", ""))
	}
	for _, m := range prices().FindAllStringSubmatch(low, -1) {
		add(m[2] + m[1])
	}
	for _, m := range signed().FindAllStringSubmatch(low, -1) {
		add(strings.Replace(m[1], "−", "-", 1))
	}
	for _, c := range mixed().FindAllString(text, -1) {
		if c = strings.TrimRight(c, "./-"); isCode(c) {
			add(c)
		}
	}
	for _, w := range WordsOf(text) {
		if w.Name {
			add(nameOf(w))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nameOf returns w without a possessive ending.
func nameOf(w Word) string {
	s, _ := strings.CutSuffix(w.Text, "'s")
	return strings.TrimSuffix(s, "'")
}

// isCode reports whether s is a word whose case or signs matter: Tiger7, AB-12, C#.
func isCode(s string) bool {
	letters, digits, upper, signs := false, false, 0, false
	for i, r := range s {
		switch {
		case unicode.IsLetter(r):
			letters = true
			if unicode.IsUpper(r) && i > 0 {
				upper++
			}
		case unicode.IsDigit(r):
			digits = true
		case strings.ContainsRune("_+#/.", r):
			signs = true
		}
	}
	if digits && !letters {
		return false // a number
	}
	if unit := strings.TrimLeft(s, "0123456789"); digits && len(unit) <= 3 && unit != s && !strings.ContainsFunc(unit, unicode.IsDigit) {
		return false // 5kg, 8th
	}
	return digits || upper > 0 || signs && letters
}

// LostProtected lists the protected parts of from that to does not contain. A number must occur in to as a
// whole number.
func LostProtected(from, to string) []string {
	there := map[string]bool{}
	for _, p := range Protected(to) {
		there[p] = true
		there[strings.TrimRightFunc(p, func(r rune) bool { return !unicode.IsDigit(r) })] = true // the 5 of 5kg
	}
	for _, w := range WordsOf(to) {
		there[w.Text], there[nameOf(w)] = true, true
	}
	was, is := numbers().FindAllString(normalise(from), -1), numbers().FindAllString(normalise(to), -1)
	return slices.DeleteFunc(Protected(from), func(p string) bool {
		return there[p] && (slices.Contains(is, p) || !slices.Contains(was, p))
	})
}

// numbers matches whole numbers: 10:30 does not contain 10.
var numbers = lazyregexp.New(`\d+(?:[.,:/-]\d+)*`)

// Missing is Lost for a text to that is shown in place of from. It accepts Anna for Annas, the
// German possessive.
func Missing(from, to string) []string {
	there := map[string]bool{}
	for _, w := range WordsOf(to) {
		there[w.Text] = true
	}
	return slices.DeleteFunc(LostProtected(from, to), func(p string) bool {
		return utf8.RuneCountInString(p) > 2 && !strings.ContainsFunc(p, unicode.IsNumber) &&
			(there[p+"s"] || there[strings.TrimSuffix(p, "s")])
	})
}
