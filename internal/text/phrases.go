package text

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"reverie/internal/lazyregexp"
)

// phrases are word lists whose items are patterns of a part of a sentence, by language. An item that begins
// with ^ stands at the beginning of the sentence. A pattern costs so much that only those of the language
// are tried.
type phrases map[string]func() *regexp.Regexp

func loadPhrases(name string) phrases {
	patterns := phrases{}
	for _, language := range Languages() {
		if len(Words(language, name)) == 0 {
			continue
		}
		patterns[language] = sync.OnceValue(func() *regexp.Regexp {
			only := func(l string) bool { return l == language }
			if slices.Contains(spaceless, language) {
				return wordListPattern(name, `(?:`, `)`, only)
			}
			return wordListPattern(name, wordBegin, wordEnd, only)
		})
	}
	return patterns
}

func (p phrases) in(sentence string, languages []string) bool {
	return slices.ContainsFunc(languages, func(l string) bool { return p[l] != nil && p[l]().MatchString(sentence) })
}

// languagesOf returns the codes of the likely languages of ws.
func languagesOf(ws []Token) (all []string) {
	if slices.ContainsFunc(ws, func(w Token) bool { return w.Ideo }) {
		return spaceless
	}
	for _, l := range Detect(ws) {
		all = append(all, l.Code())
	}
	return all
}

var (
	standing = loadPhrases("standing")
	request  = loadPhrases("wish_request")
	collects = loadPhrases("collect")
	answered = loadPhrases("said")

	sentenceEnd = lazyregexp.New(`[.!?。！？\n]+\s*`)
	oneSpelling = strings.NewReplacer("’", "'", "‘", "'", "  ", " ")
)

// maxSentences is how many sentences of a text are read. A longer text is no message about its writer.
const maxSentences = 40

// IsStandingWish reports whether a sentence of s, whose tokens are ws, asks for something to be done so from now on, or says
// what a person likes or does not. A question counts only if it is a request.
func IsStandingWish(s string, ws []Token) bool {
	languages := languagesOf(ws)
	for range maxSentences {
		end := sentenceEnd().FindStringIndex(s)
		sentence, mark, rest := s, "", ""
		if end != nil {
			sentence, mark, rest = s[:end[0]], s[end[0]:end[1]], s[end[1]:]
		}
		sentence = strings.TrimSpace(oneSpelling.Replace(strings.ToLower(sentence)))
		if standing.in(sentence, languages) && (!strings.ContainsAny(mark, "?？") || request.in(sentence, languages)) {
			return true
		}
		if s = rest; s == "" {
			break
		}
	}
	return false
}

// CollectsAll reports whether s asks for all that was said of something: in what order, how often, a list
// or a summary.
func CollectsAll(s string) bool { return collects.asks(s) }

// AsksForAnswer reports whether s asks for what the assistant said: what did you recommend?
func AsksForAnswer(s string) bool { return answered.asks(s) }

func (p phrases) asks(s string) bool {
	return p.in(strings.TrimSpace(oneSpelling.Replace(strings.ToLower(s))), languagesOf(Tokens(s)))
}
