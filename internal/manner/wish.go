package manner

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
	"reverie/internal/text"
)

// finding is one thing that a message shows: a wish that is said, or a habit.
type finding struct {
	key, value string
	said       bool
}

const (
	longestWish = 300 // characters of a message; longer ones may hold texts of others
	fewestWords = 4   // of a message whose language counts
)

// phrase is a phrase in quotation marks. It has letters only, so that it says nothing else to the model.
const phrase = `["“”'«»„「『]\s*([\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N} '-]{0,59}?)\s*["“”'«»」』]`

// grammar has the patterns of the word lists.
type grammar struct {
	wishes           map[finding]*regexp.Regexp // a group is the value
	polite           *regexp.Regexp             // a part of a sentence that wishes nothing
	comma            *regexp.Regexp             // before politeness at the end
	and              *regexp.Regexp             // between wishes
	request          *regexp.Regexp             // the beginning of a question that is a request
	familiar, formal *regexp.Regexp
}

var lists = sync.OnceValue(func() *grammar {
	any := func(name string) string { return `(?:` + strings.Join(text.All(name), `|`) + `)` }
	whole := func(pattern string) *regexp.Regexp {
		return regexp.MustCompile(`^(?:` + any("wish_before") + ` ?)*(?:` + pattern + `)(?: ?` + any("wish_after") + `)*$`)
	}
	patterns := map[finding]string{}
	for _, item := range text.All("wish") {
		pattern, meaning, _ := strings.Cut(item, "=")
		key, value, _ := strings.Cut(meaning, " ")
		patterns[finding{key, value, true}] += "|" + pattern
	}
	for _, in := range text.Languages() {
		for name, code := range text.Pairs(in, "language_called") {
			for _, pattern := range text.Words(in, "wish_language") {
				patterns[finding{Language, code, true}] += "|" + strings.ReplaceAll(pattern, "%", name)
			}
		}
	}
	patterns[finding{NotSay, "", true}] = "|" + strings.ReplaceAll(any("wish_not_say"), "%", phrase)
	g := &grammar{
		wishes: map[finding]*regexp.Regexp{}, polite: whole(any("wish_after") + `?|` + any("wish_no")),
		comma:    regexp.MustCompile(`[,，、] ?(` + any("wish_after") + `)`),
		and:      regexp.MustCompile(`[,，、;]| ` + any("wish_and") + ` `),
		request:  regexp.MustCompile(`^` + any("wish_request")),
		familiar: text.WordPattern("address_familiar")(), formal: text.WordPattern("address_formal")(),
	}
	for f, all := range patterns {
		g.wishes[f] = whole(all[1:])
	}
	return g
})

var (
	code      = lazyregexp.New("(?s)```.*?(?:```|$)|`[^`]*`")
	quoteLine = lazyregexp.New(`(?m)^\s*>`)
	quoted    = lazyregexp.New(`["“”„«»「」『』]|:\n`) // may be the words of others
	sentences = lazyregexp.New(`[^.!?。！？\n]+[.!?。！？]*`)
	japanese  = lazyregexp.New(`(?s)(?:[\p{Hiragana}\p{Katakana}].*){4}`)
	chinese   = lazyregexp.New(`^[^\p{Hiragana}\p{Katakana}]*(?:\p{Han}[^\p{Hiragana}\p{Katakana}]*){8}$`)
	spelling  = strings.NewReplacer("’", "'", "‘", "'", "‚", "'", "  ", " ")
)

// wishesIn finds wishes that are said. A sentence counts only if all of it is wishes and politeness.
func wishesIn(message string) (all []finding) {
	g := lists()
	if utf8.RuneCountInString(message) > longestWish || strings.Contains(message, ":\n") {
		return nil
	}
	for _, sentence := range sentences().FindAllString(message, -1) {
		words := strings.TrimFunc(spelling.Replace(strings.ToLower(sentence)), func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(".!?¡¿。！？", r) || unicode.Is(unicode.So, r)
		})
		if strings.ContainsAny(sentence, "?？") && !g.request.MatchString(words) {
			continue
		}
		all = append(all, g.wishesInSentence(g.comma.ReplaceAllString(words, " $1"))...)
	}
	return all
}

func (g *grammar) wishesInSentence(words string) (all []finding) {
	for _, part := range g.and.Split(words, -1) {
		n := len(all)
		for f, pattern := range g.wishes {
			if m := pattern.FindStringSubmatch(strings.TrimSpace(part)); m != nil {
				all = append(all, finding{f.key, f.value + strings.Join(m[1:], ""), true})
			}
		}
		if len(all) == n && !g.polite.MatchString(strings.TrimSpace(part)) {
			return nil
		}
	}
	return all
}

// habitsIn finds how a message addresses the assistant, its language, and emoji.
func habitsIn(message string) (all []finding) {
	familiar, formal := lists().familiar.MatchString(message), lists().formal.MatchString(message)
	if familiar && !formal && !quoted().MatchString(message) {
		all = append(all, finding{"address", "familiar", false})
	}
	if formal && !familiar && !quoted().MatchString(message) {
		all = append(all, finding{"address", "formal", false})
	}
	if language := languageOf(message); language != "" {
		all = append(all, finding{Language, language, false})
	}
	if strings.ContainsFunc(message, func(r rune) bool { return r >= 0x1F300 && r <= 0x1FAFF || r == '❤' }) {
		all = append(all, finding{"emoji", "some", false})
	}
	return all
}

// languageOf returns the language of a message if it is sure, else "".
func languageOf(message string) string {
	switch found := text.Detect(text.Tokens(message)); {
	case japanese().MatchString(message):
		return "ja"
	case chinese().MatchString(message):
		return "zh"
	case len(strings.Fields(message)) >= fewestWords && len(found) == 1:
		return found[0].Code()
	}
	return ""
}
