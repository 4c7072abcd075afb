package text

import (
	"regexp"
	"strings"
	"sync"
)

// phrases are word lists whose items are patterns of a part of a sentence. An item that begins with ^
// stands at the beginning of the sentence.
type phrases struct{ words, spaceless *regexp.Regexp }

func loadPhrases(name string) func() phrases {
	return sync.OnceValue(func() phrases { return phrases{WordPattern(name), SpacelessPattern(name)} })
}

func (p phrases) in(sentence string) bool {
	return p.words.MatchString(sentence) || p.spaceless.MatchString(sentence)
}

var (
	standing = loadPhrases("standing")
	request  = loadPhrases("standing_request")
	collects = loadPhrases("collect")

	sentenceEnd = regexp.MustCompile(`[.!?。！？\n]+\s*`)
	oneSpelling = strings.NewReplacer("’", "'", "‘", "'", "  ", " ")
)

// maxSentences is how many sentences of a text are read. A longer text is no message about its writer.
const maxSentences = 40

// IsStandingWish reports whether a sentence of s asks for something to be done so from now on, or says
// what a person likes or does not. A question counts only if it is a request.
func IsStandingWish(s string) bool {
	for range maxSentences {
		end := sentenceEnd.FindStringIndex(s)
		sentence, mark, rest := s, "", ""
		if end != nil {
			sentence, mark, rest = s[:end[0]], s[end[0]:end[1]], s[end[1]:]
		}
		sentence = strings.TrimSpace(oneSpelling.Replace(strings.ToLower(sentence)))
		if standing().in(sentence) && (!strings.ContainsAny(mark, "?？") || request().in(sentence)) {
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
func CollectsAll(s string) bool {
	return collects().in(strings.TrimSpace(oneSpelling.Replace(strings.ToLower(s))))
}
