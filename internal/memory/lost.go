package memory

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What of a text must survive when it is said in other words. A name is what begins
// with a capital letter: in languages that write more than names so, more survives.
var (
	address    = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>"'«»]+|[@\p{L}\p{N}._%+-]*[\p{L}\p{N}]?@[\p{L}\p{N}._-]+(?::[\p{L}\p{N}.-]+)?`)
	quotation  = regexp.MustCompile("\"([^\"]+)\"|«([^»]+)»|「([^」]+)」|『([^』]+)』|`([^`]+)`")
	inWords    = regexp.MustCompile(`[+-]?[\p{L}\p{M}\p{N}]+(?:[-._:,/'+#][\p{L}\p{M}\p{N}]+)*[+#]*`)
	endOfNames = regexp.MustCompile(`'s?$`)
)

// tokens lists what of text must not get lost when it is said in other words: numbers,
// dates, codes, web and mail addresses, names, and what stands in quotation marks.
// Each is there once, folded as levelled folds it, and they are sorted. Protected, which
// tells facts from each other, knows units as well; these here are looked for in a text.
func tokens(text string) []string {
	text = evenOut(text)
	var found []string
	rest := address.ReplaceAllStringFunc(text, func(a string) string {
		found = append(found, strings.TrimRight(a, ".,;:!?)"))
		return " "
	})
	for _, m := range quotation.FindAllStringSubmatch(rest, -1) {
		found = append(found, strings.Trim(strings.Join(m[1:], ""), " .,;:!?"))
	}
	end := 0
	for _, at := range inWords.FindAllStringIndex(rest, -1) {
		w := rest[at[0]:at[1]]
		if before, _ := utf8.DecodeLastRuneInString(rest[:at[0]]); at[0] > 0 && !unicode.IsSpace(before) && before != '(' {
			w = strings.TrimLeft(w, "+-") // no sign: something joins it to what stands before
		}
		first := end == 0 || strings.ContainsAny(rest[end:at[0]], ".!?\"") // of a sentence
		end = at[1]
		if protectedWord(w, first) {
			found = append(found, endOfNames.ReplaceAllString(w, ""))
		}
	}
	for i, f := range found {
		found[i] = folded.String(f)
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(f string) bool { return f == "" })
}

// protectedWord tells numbers, codes and names. A small word is no name where a
// sentence begins, and I never is.
func protectedWord(w string, first bool) bool {
	if strings.ContainsFunc(w, unicode.IsNumber) || strings.ContainsAny(w, "_+#") {
		return true
	}
	small := smallWords[foldWord(w)] != 0
	r, size := utf8.DecodeRuneInString(strings.TrimLeft(w, "-"))
	inside := strings.ContainsFunc(w[min(len(w), size):], unicode.IsUpper) // iPhone
	return inside || unicode.IsUpper(r) && !(small && (first || len(w) == size || strings.HasPrefix(w, "I'")))
}

// levelled is text in which tokens are looked for.
func levelled(text string) string { return folded.String(evenOut(text)) }

// evenOut makes one of the ways in which people write the same sign.
func evenOut(text string) string {
	text = strings.Join(strings.Fields(normalise(text)), " ")
	return strings.Map(func(r rune) rune {
		switch r {
		case '’', 'ʼ', '‘', '‚':
			return '\''
		case '“', '”', '„', '‟':
			return '"'
		case '–', '—', '‐', '‑', '−':
			return '-'
		}
		return r
	}, text)
}

// unkept lists the tokens of old that text does not say, whatever their case. Unlike
// Lost it looks for them in the text: 10 is not in 100 or at 10:30, nor 5 in -5.
func unkept(old, text string) []string {
	text = levelled(text)
	return slices.DeleteFunc(tokens(old), func(token string) bool {
		shorter, genitive := strings.CutSuffix(token, "s") // Janas Schwester
		return within(token, text) || genitive && utf8.RuneCountInString(shorter) > 2 && !strings.ContainsFunc(token, unicode.IsNumber) && within(shorter, text)
	})
}

// Missing lists what of from must not get lost when to is shown for it: unlike Lost it takes
// Annas for Anna. Amounts are compared with their units, as Lost does.
func Missing(from, to string) []string {
	amounts := slices.DeleteFunc(Lost(from, to), func(p string) bool { return !strings.ContainsFunc(p, unicode.IsNumber) })
	return append(unkept(from, to), amounts...)
}

// within reports whether token is in text, and no part of a longer word or number.
// A name may have an s at its end.
func within(token, text string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], token)
		if i < 0 {
			return false
		}
		before, after := text[:at+i], text[at+i+len(token):]
		if !strings.ContainsFunc(token, unicode.IsNumber) {
			if rest, ok := strings.CutPrefix(after, "s"); ok && !goesOn(token, rest) {
				after = rest
			}
		}
		if !goesOn(token, after) && !comesBefore(token, before) {
			return true
		}
		_, size := utf8.DecodeRuneInString(token)
		at += i + size
	}
}

// goesOn reports whether after belongs to the word or number that token ends with.
func goesOn(token, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(token)
	next, size := utf8.DecodeRuneInString(after)
	switch {
	case after == "" || spaceless(last) || spaceless(next):
		return false
	case ofWords(next):
		return ofWords(last)
	}
	return unicode.IsNumber(last) && strings.ContainsRune(".,:/-", next) && nextIs(after[size:], unicode.IsNumber)
}

func comesBefore(token, before string) bool {
	first, _ := utf8.DecodeRuneInString(token)
	last, size := utf8.DecodeLastRuneInString(before)
	switch {
	case before == "" || spaceless(first) || spaceless(last):
		return false
	case ofWords(last):
		return ofWords(first)
	}
	earlier, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
	if unicode.IsNumber(first) && strings.ContainsRune("+-", last) && (unicode.IsSpace(earlier) || len(before) == size) {
		return true // another sign
	}
	return unicode.IsNumber(first) && strings.ContainsRune(".,:/-", last) && unicode.IsNumber(earlier)
}

func ofWords(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }
