// Package text analyses natural-language text: tokens, stems, languages, dates, and the parts that
// must survive a rewording.
//
// Word lists by language are in data/words/LANGUAGE.txt. Tokens are case-folded. Their terms are
// stems in the text's language, character bigrams for scripts without spaces, and dates in one form
// for all languages. Everything is deterministic, so that an index can be verified by rebuilding
// it.
package text

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	reverie "reverie"
)

// lists holds the word lists by language and name.
var lists = sync.OnceValue(func() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	files, _ := fs.Glob(reverie.Words, "*.txt") // embedded, so it cannot fail
	for _, file := range files {
		b, _ := fs.ReadFile(reverie.Words, file)
		of := map[string][]string{}
		for line := range strings.Lines(string(b)) {
			name, words, ok := strings.Cut(strings.TrimSpace(line), ": ")
			if ok && name[0] != '#' {
				of[name] = append(of[name], strings.Split(words, ", ")...)
			}
		}
		all[strings.TrimSuffix(path.Base(file), ".txt")] = of
	}
	return all
})

// Words returns a list in a language such as "de"; nil if there is no such list.
func Words(language, name string) []string { return slices.Clone(lists()[language][name]) }

// Pairs returns a list of items word=meaning as a map.
func Pairs(language, name string) map[string]string {
	all := map[string]string{}
	for _, item := range lists()[language][name] {
		word, meaning, _ := strings.Cut(item, "=")
		all[word] = meaning
	}
	return all
}

// All returns a list in all languages.
func All(name string) (all []string) {
	for _, language := range Languages() {
		all = append(all, lists()[language][name]...)
	}
	return all
}

// Languages returns the codes of the languages with lists, such as "de", sorted.
func Languages() []string {
	return slices.Sorted(maps.Keys(lists()))
}

// Set returns a list in all languages as a set.
func Set(name string) map[string]bool {
	set := map[string]bool{}
	for _, w := range All(name) {
		set[w] = true
	}
	return set
}

// spaceless are the languages without spaces between words.
var spaceless = []string{"ja", "zh"}

const (
	wordBegin = `(?:^|[^\p{L}\p{N}'])(?:`
	wordEnd   = `)(?:$|[^\p{L}\p{N}'])`
)

// WordPattern matches a whole word of a list, in languages with spaces between words. It is compiled
// when it is used for the first time, because it is large.
func WordPattern(name string) func() *regexp.Regexp {
	parts := func(language string) bool { return !slices.Contains(spaceless, language) }
	return sync.OnceValue(func() *regexp.Regexp { return wordListPattern(name, wordBegin, wordEnd, parts) })
}

// SpacelessPattern is WordPattern for languages without spaces between words, where a word matches anywhere.
func SpacelessPattern(name string) func() *regexp.Regexp {
	wide := func(language string) bool { return slices.Contains(spaceless, language) }
	return sync.OnceValue(func() *regexp.Regexp { return wordListPattern(name, `(?:`, `)`, wide) })
}

func wordListPattern(name, before, behind string, in func(language string) bool) *regexp.Regexp {
	var words []string
	for _, language := range Languages() {
		if in(language) {
			words = append(words, lists()[language][name]...)
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { // longest first, so that "no longer" wins over "no"
		return cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a))
	})
	return regexp.MustCompile(before + strings.Join(words, "|") + behind)
}
