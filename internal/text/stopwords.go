package text

import (
	"slices"
	"strings"
)

// codes are the languages with a stemmer, as named in data/words.
var codes = [languages]string{en: "en", de: "de", es: "es", fr: "fr", it: "it", pt: "pt", ru: "ru"}

// stopWords maps stop words to a bit set of languages. They identify the language of a text.
// Queries omit them; the index does not.
var stopWords, stopIdeo = loadStopWords()

func loadStopWords() (map[string]uint8, map[string]bool) {
	small := make(map[string]uint8, 2000)
	for l, name := range codes {
		for _, w := range Words(name, "stop") {
			small[foldWord(w)] |= 1 << l
		}
	}
	ideo := map[string]bool{}
	for _, w := range Words("zh", "stop") {
		ideo[w] = true
	}
	return small, ideo
}

// irregular maps irregular word forms to their base form.
var irregular = loadIrregular()

func loadIrregular() (out [languages]map[string]string) {
	for l, name := range codes {
		out[l] = map[string]string{}
		for _, entry := range Words(name, "irregular") {
			base, forms, _ := strings.Cut(entry, "=")
			for form := range strings.FieldsSeq(forms) {
				out[l][foldWord(form)] = foldWord(base)
			}
		}
	}
	return out
}

// Small-talk words are courtesies, assent, and verbs such as think, say and do. They find candidates
// like other words, but do not show that a memory is about a message's topic.
var smallTalk, smallTalkIdeo = loadSmallTalk()

func loadSmallTalk() (stems [languages]map[string]bool, ideo map[rune]bool) {
	for l, name := range codes {
		stems[l] = map[string]bool{}
		for _, w := range Words(name, "idle") {
			for _, part := range Tokens(w) {
				stems[l][stemIn(Language(l), part.Text)] = true
			}
		}
	}
	ideo = map[rune]bool{}
	for _, r := range strings.Join(slices.Concat(Words("zh", "stop"), Words("zh", "idle"), Words("ja", "idle")), "") {
		ideo[r] = true
	}
	return stems, ideo
}

// IsSmallTalk reports whether w says nothing about the topic of a message in langs. In scripts
// without spaces, a token may span two words, so every character must be one of small talk.
func IsSmallTalk(w Token, langs []Language) bool {
	if IsStopWord(w, langs) {
		return true
	}
	if w.Ideo {
		return strings.IndexFunc(w.Text, func(r rune) bool { return !smallTalkIdeo[r] }) < 0
	}
	for _, l := range langs {
		if smallTalk[l][stemIn(l, w.Text)] {
			return true
		}
	}
	return false
}

// IsStopWord reports whether w is a stop word in one of langs: an article, a preposition, is, has.
func IsStopWord(w Token, langs []Language) bool {
	if w.Ideo {
		return stopIdeo[w.Text]
	}
	bits := stopWords[w.Text]
	for _, l := range langs {
		if bits&(1<<l) != 0 {
			return true
		}
	}
	return false
}
