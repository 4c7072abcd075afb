// Package text analyses texts: their tokens, stems, languages and dates, and what in them
// must not be lost.
//
// Lists of words by language stand in data/words/LANGUAGE.txt. A token is folded; its terms are
// stems in the language of the text, pairs of characters where a script has no spaces, and dates
// in one form for all languages. Everything is deterministic, so that an index can be checked by
// making it again.
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

// lists are the words by language and name of the list.
var lists = sync.OnceValue(func() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	files, _ := fs.Glob(reverie.Words, "*.txt") // embedded, so they are there
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

// Words are the words of a list in a language such as "de"; none if it has no such list.
func Words(language, name string) []string { return slices.Clone(lists()[language][name]) }

// Pairs are the meanings of the words of a list in a language, which are written word=meaning.
func Pairs(language, name string) map[string]string {
	all := map[string]string{}
	for _, item := range lists()[language][name] {
		word, meaning, _ := strings.Cut(item, "=")
		all[word] = meaning
	}
	return all
}

// All are the words of a list in all languages.
func All(name string) (all []string) {
	for _, language := range Languages() {
		all = append(all, lists()[language][name]...)
	}
	return all
}

// Languages are the codes of the languages that have lists, such as "de", sorted.
func Languages() []string {
	return slices.Sorted(maps.Keys(lists()))
}

// Set are the words of a list in all languages, to be looked up.
func Set(name string) map[string]bool {
	set := map[string]bool{}
	for _, w := range All(name) {
		set[w] = true
	}
	return set
}

// spaceless are the languages that put no blanks between words.
var spaceless = []string{"ja", "zh"}

// Pattern finds a word of a list that stands by itself, in the languages that part words.
func WordPattern(name string) *regexp.Regexp {
	parts := func(language string) bool { return !slices.Contains(spaceless, language) }
	return anyOf(name, `(?:^|[^\p{L}\p{N}'])(?:`, `)(?:$|[^\p{L}\p{N}'])`, parts)
}

// Spaceless finds a word of a list in Chinese and Japanese, wherever it stands.
func SpacelessPattern(name string) *regexp.Regexp {
	return anyOf(name, `(?:`, `)`, func(language string) bool { return slices.Contains(spaceless, language) })
}

func anyOf(name, before, behind string, in func(language string) bool) *regexp.Regexp {
	var words []string
	for _, language := range Languages() {
		if in(language) {
			words = append(words, lists()[language][name]...)
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { // the longest first: of "no" and "no longer" the whole is found
		return cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a))
	})
	return regexp.MustCompile(before + strings.Join(words, "|") + behind)
}
