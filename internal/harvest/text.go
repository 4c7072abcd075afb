package harvest

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"reverie/internal/lazyregexp"
	"reverie/internal/text"
)

// elision replaces parts of a message that are not its sender's words.
const elision = "[…]"

var codeBlock = lazyregexp.New("(?s)```.*?(?:```|$)|~~~.*?(?:~~~|$)")

// OwnWords returns a message without quoted lines, code blocks and forwarded mail.
func OwnWords(text string) string {
	text = codeBlock().ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), elision)
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), ">") {
			if n := len(out); n == 0 || out[n-1] != elision {
				out = append(out, elision)
			}
			continue
		}
		if forwardRE().MatchString(l) { // the rest is forwarded
			out = append(out, elision)
			break
		}
		out = append(out, l)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

var forwardRE = lazyregexp.New(`(?i)^\s*-{2,}\s*(?:original message|forwarded message|begin forwarded` +
	`|ursprüngliche nachricht|weitergeleitete nachricht)|^\s*(?:from|von):\s.*@`)

// normalizeText folds text for comparing quotes: case, blanks, quotation marks, and non-words at its ends.
func normalizeText(text string) string {
	text = fold.String(norm.NFKC.String(text))
	text = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`"“”„«»‟「」『』*_`+"`", r), unicode.Is(unicode.Cf, r):
			return -1
		case strings.ContainsRune("’‘‚´", r):
			return '\''
		case strings.ContainsRune("–—‐‑", r):
			return '-'
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, text)
	return strings.TrimFunc(strings.Join(strings.Fields(text), " "), func(r rune) bool { return !isWordRune(r) })
}

// contextBytes is how much text before and after a quote counts as its context.
const contextBytes = 300

// FindQuote finds a quote in a person's own words. It returns the text around it, or why it is not valid.
func FindQuote(own, quote string) (near, why string) {
	want := normalizeText(quote)
	if want == "" || !strings.ContainsFunc(want, isWordRune) {
		return "", refusedQuote
	}
	normalized := normalizeText(own)
	if !text.WholeWords(normalized, want) {
		return "", refusedQuote
	}
	if onlyInQuotes(own, want) {
		return "", refusedOthersWords
	}
	i := strings.Index(normalized, want)
	if len(normalized) <= 2*contextBytes {
		return own, ""
	}
	from, to := max(0, i-contextBytes), min(len(normalized), i+len(want)+contextBytes)
	for from > 0 && !utf8.RuneStart(normalized[from]) {
		from--
	}
	for to < len(normalized) && !utf8.RuneStart(normalized[to]) {
		to++
	}
	return normalized[from:to], ""
}

// quotedSpeechRE matches text in quotation marks, long enough for a sentence.
var quotedSpeechRE = lazyregexp.New(`"[^"\n]{3,}"|“[^“”\n]{3,}”|„[^“”„\n]{3,}[“”]|«[^«»\n]{3,}»|»[^«»\n]{3,}«|「[^」]{2,}」`)

// onlyInQuotes reports whether want occurs only within quotation marks.
func onlyInQuotes(own, want string) bool {
	inside := false
	for _, s := range quotedSpeechRE().FindAllString(own, -1) {
		inside = inside || strings.Contains(normalizeText(s), want)
	}
	return inside && !text.WholeWords(normalizeText(quotedSpeechRE().ReplaceAllString(own, " "+elision+" ")), want)
}

// lastQuestion returns the question that ends the assistant's text, or "". The rest is ignored
// because it repeats memories.
func lastQuestion(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasSuffix(text, "?") && !strings.HasSuffix(text, "？") {
		return ""
	}
	i := strings.LastIndexAny(strings.TrimRight(text, "?？"), ".!?\n。！？:")
	question := strings.TrimLeft(text[max(i, 0):], ".!?\n。！？: ")
	if utf8.RuneCountInString(question) > 200 {
		return ""
	}
	return strings.Join(strings.Fields(question), " ")
}

// secretNearQuote reports whether the quote's sentence mentions a secret, or continues one that does.
func secretNearQuote(own, quote string) bool {
	want := normalizeText(quote)
	previous := ""
	for _, s := range sentenceEnd().Split(own, -1) {
		plain := normalizeText(s)
		if plain == "" {
			continue
		}
		if strings.Contains(plain, want) || strings.Contains(want, plain) {
			if text.HasSecret(s) || text.HasSecret(previous) && dependsOnPrevious(plain) {
				return true
			}
		}
		previous = s
	}
	return false
}

var (
	sentenceEnd = lazyregexp.New(`[.!?。！？]+(?:\s|$)|\n`)
	dependentRE = lazyregexp.New(`^(?:it|its|it's|that|this|those|es|das|er|sie|der|die|und|and)\b`)
)

// dependsOnPrevious reports whether a sentence refers to the one before it. It is also true if the
// sentence has a token of letters and digits.
func dependsOnPrevious(plain string) bool {
	if dependentRE().MatchString(plain) {
		return true
	}
	for w := range strings.FieldsSeq(plain) {
		if hasDigit(w) && strings.ContainsFunc(w, unicode.IsLetter) {
			return true
		}
	}
	return false
}
