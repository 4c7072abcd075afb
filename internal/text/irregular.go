package text

import (
	"strings"
)

// codes are the languages that are stemmed, as data/words calls them.
var codes = [languages]string{en: "en", de: "de", es: "es", fr: "fr", it: "it", pt: "pt", ru: "ru"}

// smallWords tells in which languages a word says little, a bit for each. Such words tell a text's
// language, and are left out of questions, never of texts.
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

// irregular leads from forms that no rule of endings explains to their base.
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
