package text

import (
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
