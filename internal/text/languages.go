package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
)

// Language is a language with a stemmer.
type Language uint8

const (
	en Language = iota
	de
	es
	fr
	it
	pt
	ru
	languages = iota
)

// Code returns the code of the language's word lists, such as "de".
func (l Language) Code() string {
	return [languages]string{"en", "de", "es", "fr", "it", "pt", "ru"}[l]
}

var latin = []Language{en, de, es, fr, it, pt}
var cyrillic = []Language{ru}

var stemmers = [languages]func(*snowballstem.Env) bool{
	english.Stem, german.Stem, spanish.Stem, french.Stem, italian.Stem, portuguese.Stem, russian.Stem,
}

// stemIn stems w in lang. Irregular forms are looked up first: no suffix rule maps went to go.
func stemIn(lang Language, w string) string {
	if base, ok := irregular[lang][w]; ok {
		w = base
	}
	if lang == en {
		w, _ = strings.CutSuffix(w, "'s")
	} else if i := strings.LastIndexByte(w, '\''); i >= 0 && i <= 5 && (lang == fr || lang == it) {
		w = w[i+1:] // l'amie, dell'anno
	}
	for _, r := range endings[lang] {
		if rest, ok := strings.CutSuffix(w, r[0]); ok && len(rest) >= 2 {
			w = rest + r[1]
			break
		}
	}
	env := snowballstem.NewEnv(w)
	stemmers[lang](env)
	if s := env.Current(); s != "" {
		return s
	}
	return w
}

// endings are suffix replacements made before stemming. The stemmers would separate singular and
// plural of such words.
var endings = [languages][][2]string{
	es: {{"dades", "dad"}, {"ces", "z"}, {"mente", ""}},
	fr: {{"geons", "ger"}, {"ues", "u"}, {"ue", "u"}, {"us", "u"}},
	pt: {{"mente", ""}, {"ções", "ção"}, {"ões", "ão"}, {"ais", "al"}, {"éis", "el"}, {"uis", "ul"}},
}

// Detect returns the likely languages of ws, by script, stop words and accents: one if it is clear,
// else all of the script.
func Detect(ws []Token) []Language {
	var votes [languages]int
	cyr, lat := 0, 0
	for _, w := range ws {
		if w.Ideo || w.Text == "" {
			continue
		}
		switch r, _ := utf8.DecodeRuneInString(w.Text); {
		case r >= 0x400 && r < 0x530:
			cyr++
			continue
		case unicode.IsLetter(r):
			lat++
		}
		small := stopWords[w.Text]
		for l := range votes {
			if small&(1<<l) != 0 {
				votes[l] += 2
			}
		}
		for _, r := range w.Text {
			for l, letters := range accentVotes {
				if r >= 0x80 {
					votes[l] += strings.Count(letters, string(r))
				}
			}
		}
	}
	if cyr > lat {
		return cyrillic
	}
	byVotes := slices.SortedStableFunc(slices.Values(latin), func(a, b Language) int { return votes[b] - votes[a] })
	if votes[byVotes[0]] == votes[byVotes[1]] {
		return latin
	}
	return byVotes[:1]
}

// accentVotes are letters that few languages have. Those repeated have more weight.
var accentVotes = [languages]string{
	de: "äöü", es: "ññ¿¿¡¡éíóáú", fr: "çêâœœûûîîëëïïèùàé", it: "èùàòì", pt: "ããõõçêâéíóáú",
}
