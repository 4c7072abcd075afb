package dream

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/lazyregexp"
	"reverie/internal/text"
)

// The word lists are in data/words.

var (
	articles   = text.Set("article")
	shortForms = strings.NewReplacer("n't", " not", "i'm ", "i am ", "he's ", "he is ", "she's ", "she is ", "it's ", "it is ",
		"there's ", "there is ", "’s", "'s", "’", "'")
	notePrefix = lazyregexp.New(`^(?:(?:please )?(?:remember|note|fyi|by the way|don't forget|merke dir|merk dir|notiz|übrigens|` +
		`bitte merken)(?: that| dass)? )+`)
	// Articles that do not mark a case.
	caseless = map[string]bool{"a": true, "an": true, "the": true, "die": true, "das": true, "ein": true, "eine": true}

	// An odd number of negations makes a text negative. A negation of two words counts once.
	negation  = text.WordPattern("negation")
	spaceless = text.SpacelessPattern("negation")

	// Words of uncertainty, conditions and the past.
	hedges     = text.WordPattern("hedge")
	hedgesWide = text.SpacelessPattern("hedge")

	// Words of change.
	changes     = text.WordPattern("change")
	changesWide = text.SpacelessPattern("change")

	// Words of addition.
	adds = text.WordPattern("addition")

	selfWords = text.WordPattern("self")

	// Words that join two statements.
	both      = text.WordPattern("two_things")
	gradeA    = lazyregexp.New(`[^.!?:;\s]["“„(]?\s+["“„(]?A(?:[^\p{L}\p{N}']|$)`) // vitamin A, block A: no article
	namely    = strings.NewReplacer(" und zwar ", " ", " and that is ", " ")
	bothWide  = text.SpacelessPattern("two_things")
	couples   = lazyregexp.New(` (?:and|und) \p{L}+ (?:are|sind) (?:married|engaged|a couple|verheiratet|verlobt|ein paar)\b`)
	shortened = lazyregexp.New(`(?i)(\b(?:dr|mr|mrs|ms|mx|prof|st|jr|sr|jun|sen|rev|capt|sgt|lt|gen|lic|arq|dra|fr|hr|hrn|frl|fam|` +
		`med|mme|mlle|srta|sig|dott|avv|zi|abt|std|tgl|tägl|evtl|ggf|inkl|zzgl|vgl|approx|dept|` +
		`incl|excl|feb|apr|aug|sept|okt|oct|nov|dez|dec|ca|bzw|hl|tel|geb|ext|av|blvd|apt|fl|sra?|núm|` +
		`\p{L}*(?:no|nr|str)|[a-z])|\b[0-3]?\d)\.( (?:\p{L}|\d))`)
	// Words that end something, as the first of two statements.
	endings   = text.WordPattern("ending")
	sentences = lazyregexp.New(`[.!?;。！？；]\s+\S|[;；。]\S|\s/\s`)

	// Words without a meaning of their own.
	asides = text.Set("aside")
)

// alike maps words to the one they mean in an answer: lives, resides and moved are live.
var alike = func() map[string]string {
	out := map[string]string{}
	for _, language := range text.Languages() {
		for means, words := range text.Pairs(language, "alike") {
			for w := range strings.FieldsSeq(words) {
				out[w] = means
			}
		}
	}
	return out
}()

// matchesWide reports whether text matches a pattern for languages without spaces.
func matchesWide(pattern *regexp.Regexp, text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x2E80 }) && pattern.MatchString(text)
}

// negations counts the negations in low, which is lower case with spaces around.
func negations(low string) int {
	n := len(spaceless().FindAllString(low, -1))
	for rest := low; ; n++ {
		at := negation().FindStringIndex(rest)
		if at == nil {
			return n
		}
		rest = " " + strings.TrimLeft(rest[at[1]-1:], " ")
	}
}

// unshorten removes the full stops of abbreviations (Dr. med. Roth).
func unshorten(text string) string {
	for strings.Contains(text, ". ") {
		next := shortened().ReplaceAllString(text, "$1$2")
		if next == text {
			break
		}
		text = next
	}
	return text
}

func isCompound(text, low string) bool {
	return both().MatchString(couples().ReplaceAllString(namely.Replace(low), " ")) || matchesWide(bothWide(), low) ||
		sentences().MatchString(unshorten(text))
}

// isTurn reports whether a compound text first tells of an end, then of its successor. Both are
// about one person, and it names no second person.
func isTurn(text, low string) bool {
	at := both().FindAllStringIndex(low, -1)
	if len(at) != 1 || sentences().MatchString(unshorten(text)) {
		return false
	}
	first, rest := low[:at[0][0]+1], strings.Fields(low[at[0][1]-1:])
	if len(rest) == 0 || !endings().MatchString(first) || endings().MatchString(low[at[0][1]-1:]) {
		return false
	}
	words := slices.DeleteFunc(strings.Fields(first), func(w string) bool { return articles[w] })
	all := strings.Fields(text)
	next := []rune(all[len(all)-len(rest)])[0]
	return len(words) > 0 && !unicode.IsUpper(next) && !slices.Contains(rest, words[0]) && !slices.Contains(rest, words[0]+"'s")
}
