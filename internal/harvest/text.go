package harvest

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"reverie/internal/text"
)

// cited stands in the place of what in a message is not its sender's words.
const cited = "[…]"

var codeBlock = regexp.MustCompile("(?s)```.*?(?:```|$)|~~~.*?(?:~~~|$)")

// OwnWords is a message without what its sender took over from elsewhere: lines that are
// marked as quoted, blocks of code, forwarded mail.
func OwnWords(text string) string {
	text = codeBlock.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), cited)
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), ">") {
			if n := len(out); n == 0 || out[n-1] != cited {
				out = append(out, cited)
			}
			continue
		}
		if forwardRE.MatchString(l) { // all that follows is somebody else's
			out = append(out, cited)
			break
		}
		out = append(out, l)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

var forwardRE = regexp.MustCompile(`(?i)^\s*-{2,}\s*(?:original message|forwarded message|begin forwarded` +
	`|ursprüngliche nachricht|weitergeleitete nachricht)|^\s*(?:from|von):\s.*@`)

// plainText is text as quotes are compared: one case, one kind of blank and of quotation
// marks, nothing at its ends that is no word.
func plainText(text string) string {
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

// around is how much before and after a quote counts as what it was said with.
const around = 300

// FindQuote finds a quote in a person's own words, and returns what stands around it, or
// why it is none.
func FindQuote(own, quote string) (near, why string) {
	want := plainText(quote)
	if want == "" || !strings.ContainsFunc(want, isWordRune) {
		return "", refusedQuote
	}
	plain := plainText(own)
	if !text.WholeWords(plain, want) {
		return "", refusedQuote
	}
	if citedOnly(own, want) {
		return "", refusedOther
	}
	i := strings.Index(plain, want)
	if len(plain) <= 2*around {
		return own, ""
	}
	from, to := max(0, i-around), min(len(plain), i+len(want)+around)
	for from > 0 && !utf8.RuneStart(plain[from]) {
		from--
	}
	for to < len(plain) && !utf8.RuneStart(plain[to]) {
		to++
	}
	return plain[from:to], ""
}

// spokenRE is what stands between quotation marks and is long enough for a sentence.
var spokenRE = regexp.MustCompile(`"[^"\n]{3,}"|“[^“”\n]{3,}”|„[^“”„\n]{3,}[“”]|«[^«»\n]{3,}»|»[^«»\n]{3,}«|「[^」]{2,}」`)

// citedOnly reports whether want stands within quotation marks only.
func citedOnly(own, want string) bool {
	inside := false
	for _, s := range spokenRE.FindAllString(own, -1) {
		inside = inside || strings.Contains(plainText(s), want)
	}
	return inside && !text.WholeWords(plainText(spokenRE.ReplaceAllString(own, " "+cited+" ")), want)
}

// lastQuestion is the question at the end of what the assistant said before, "" if it asked none. The
// rest of its words is not read, because it repeats what is remembered.
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

// nearSecret reports whether the sentence of a quote speaks of a secret, or goes on with one that
// the sentence before it speaks of.
func nearSecret(own, quote string) bool {
	want := plainText(quote)
	before := ""
	for _, s := range sentenceEnd.Split(own, -1) {
		plain := plainText(s)
		if plain == "" {
			continue
		}
		if strings.Contains(plain, want) || strings.Contains(want, plain) {
			if text.HasSecret(s) || text.HasSecret(before) && goesOn(plain) {
				return true
			}
		}
		before = s
	}
	return false
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?。！？]+(?:\s|$)|\n`)
	goesOnRE    = regexp.MustCompile(`^(?:it|its|it's|that|this|those|es|das|er|sie|der|die|und|and)\b`)
)

// goesOn reports whether a sentence depends on the one before it, or holds a word that is none.
func goesOn(plain string) bool {
	if goesOnRE.MatchString(plain) {
		return true
	}
	for w := range strings.FieldsSeq(plain) {
		if withDigit(w) && strings.ContainsFunc(w, unicode.IsLetter) {
			return true
		}
	}
	return false
}
