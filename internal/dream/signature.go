package dream

import (
	"slices"
	"strings"
	"unicode"

	"reverie/internal/memory"
	"reverie/internal/text"
)

// signature is an entry with the features that comparisons use.
type signature struct {
	memory.Entry
	names     *namer
	plain     string // memory.PlainWords
	core      string // plain without insignificant words; see core
	protected string // text.Protected, joined
	tokens    []token
	stems     []int32 // of content words, sorted and unique
	negative  bool
	compound  bool // has several statements
	turned    bool // compound of an end and its successor: sold the car and drives a van
	hedged    bool // is uncertain or conditional
	changed   bool // has a word of change
	adds      bool // has a word of addition
	self      bool // is about the owner of the memory
}

type token struct {
	text  string
	stem  int32   // the most likely one
	stems []int32 // all possible ones
	small bool    // function word
	name  bool
	after bool // follows a punctuation mark

	change bool   // is only a word of change; moved also means live, so it is not
	base   string // a name without its possessive ending: anna in Annas Auto
	whose  bool   // is a possessive: Anna's
}

// namer numbers stems for fast comparison.
type namer struct {
	numbers map[string]int32
	own     map[string]bool // names that end in s without being a possessive
	change  map[string]bool // caches tellsChange
}

func newNamer() namer {
	return namer{numbers: map[string]int32{}, own: map[string]bool{}, change: map[string]bool{}}
}

func (n *namer) tellsChange(word string) bool {
	is, known := n.change[word]
	if !known {
		is = saysChange(word) && alike[word] == ""
		n.change[word] = is
	}
	return is
}

// same reports whether two names are equal. Annas before a noun is Anna's, unless Annas is also a name,
// as Andreas is not Andrea.
func (n *namer) same(a, b token) bool {
	return a.text == b.text || n.possessor(a) == n.possessor(b)
}

func (n *namer) possessor(t token) string {
	if n.own[t.text] {
		return t.text
	}
	return t.base
}

func (n *namer) number(s string) int32 {
	i, there := n.numbers[s]
	if !there {
		i = int32(len(n.numbers)) + 1
		n.numbers[s] = i
	}
	return i
}

// saysChange reports whether low, which is lower case, has a word of change.
func saysChange(low string) bool {
	return changes().MatchString(low) || matchesWide(changesWide(), low)
}

func (n *namer) signatureOf(e memory.Entry) signature {
	s := signature{Entry: e, names: n, plain: text.PlainWords(e.Text)}
	s.protected = strings.Join(text.Protected(e.Text), "\x00")
	if s.core = core(s.plain); gradeA().MatchString(e.Text) {
		s.core = s.plain
	}
	low := " " + strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(e.Text, "’", "'"))), " ") + " "
	s.negative = negations(low)%2 == 1
	s.hedged = hedges().MatchString(low) || matchesWide(hedgesWide(), low)
	s.changed = saysChange(low) || endings().MatchString(low)
	s.adds = adds().MatchString(low)
	s.compound = isCompound(e.Text, low)
	s.turned = s.compound && isTurn(e.Text, low)
	s.tokens = n.splitWords(e.Text)
	s.self = selfWords().MatchString(low) || slices.ContainsFunc(s.tokens, func(t token) bool { return t.small && t.text == "mia" })
	for _, t := range s.tokens {
		if !t.small {
			s.stems = append(s.stems, t.stem)
		}
	}
	s.stems = unique(s.stems)
	return s
}

func unique(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

func (n *namer) splitWords(said string) []token {
	var out []token
	parted := false
	for i, piece := range pieces(unshorten(said)) {
		parted = parted || i > 0
		for _, w := range text.WordsOf(piece) {
			t := token{small: w.Stop && w.Text != "like", name: w.Name, after: parted}
			t.text, t.whose = strings.CutSuffix(w.Text, "'s")
			parted = false
			for _, s := range w.Stems {
				if len(s) < 3 && len(t.text) > 3 {
					continue // anna's is a form of s in a language that writes l'amie
				}
				t.stems = append(t.stems, n.number(s))
			}
			if means := alike[t.text]; means != "" {
				t.stems = []int32{n.number(means)}
			}
			if len(t.stems) == 0 {
				continue
			}
			t.stem, t.change = t.stems[0], n.tellsChange(t.text)
			out = append(out, t)
		}
	}
	for i, t := range out {
		bare, ends := strings.CutSuffix(t.text, "s")
		if out[i].base = t.text; !t.name || !ends || hasDigit(t.text) {
			continue
		}
		if i+1 < len(out) && out[i+1].name && !out[i+1].after && len(bare) > 2 {
			out[i].base, out[i].whose = bare, true
		} else {
			n.own[t.text] = true
		}
	}
	return out
}

// pieces splits text at punctuation, but not within numbers.
func pieces(text string) []string {
	var out []string
	start := 0
	runes := []rune(text)
	for i, r := range runes {
		if !strings.ContainsRune(",;:()=–—!?\"“”„«».", r) {
			continue
		}
		if i > 0 && i+1 < len(runes) && !unicode.IsSpace(runes[i+1]) && !unicode.IsSpace(runes[i-1]) && strings.ContainsRune(",.:", r) {
			continue // 17:30, example.org
		}
		out = append(out, string(runes[start:i]))
		start = i + 1
	}
	return append(out, string(runes[start:]))
}

// core returns plain without note prefixes, short forms and articles that mark no case. An initial
// "a" or "an" stays, because it may be a preposition (a Luca piace Elena, an Jens schreibt Karl).
func core(plain string) string {
	var kept []string
	for i, w := range strings.Fields(notePrefix().ReplaceAllString(shortForms.Replace(plain), "")) {
		if !caseless[w] || i == 0 && len(w) <= 2 {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

func has(list []int32, x int32) bool {
	_, there := slices.BinarySearch(list, x)
	return there
}

// jaccard is the Jaccard index of the sorted sets a and b, 0 to 1.
func jaccard(a, b []int32) float64 {
	both := 0
	for _, x := range a {
		both += flag(has(b, x))
	}
	if both == 0 {
		return 0
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// rank orders sources: pinned or written by a person, then noted or harvested, then merged, then inferred.
func rank(e memory.Entry) int {
	r := 2
	switch e.Source {
	case memory.UserExplicit, memory.FromFile:
		r = 3
	case memory.DreamingMerge:
		r = 1
	}
	if e.Kind == memory.Insight && r < 3 {
		r = 0
	}
	if e.Pinned {
		r += 10
	}
	return r
}

// outranks reports whether a is trusted more than b. It is also true if a person wrote a and b was
// only harvested. For harvested and merged entries the dates decide.
func outranks(a, b memory.Entry) bool {
	x, y := rank(a), rank(b)
	return a.Integrity > b.Integrity || x > y && (x > 2 || y == 0)
}

// together reports whether a and b may be about the same: one scope and no different subject. In a shared
// scope an "I" without a subject matches nothing.
func together(a, b *signature) bool {
	if a.Scope != b.Scope || a.Conversation != "" || b.Conversation != "" {
		return false
	}
	if !strings.EqualFold(a.Subject, b.Subject) {
		for _, s := range []*signature{a, b} {
			who := strings.ToLower(s.Subject)
			if !strings.Contains(strings.ToLower(a.Text), who) || !strings.Contains(strings.ToLower(b.Text), who) {
				return false
			}
		}
	}
	return a.Subject != "" || strings.HasPrefix(string(a.Scope), "private:") || !a.self && !b.self
}

// covers reports whether b evidently says all that a says. It has the same words, or the same words and,
// after a punctuation mark, a few more. If a is newer than a longer b it stays: those words may have
// cancelled it, and a restored it.
func covers(b, a *signature) bool {
	if a.negative != b.negative || !a.ValidTo.Equal(b.ValidTo) || !a.ValidFrom.Equal(b.ValidFrom) || a.core == "" {
		return false
	}
	if a.plain == b.plain {
		return len(text.LostProtected(a.Text, b.Text)) == 0
	}
	if a.core == b.core {
		return a.protected == b.protected
	}
	if a.hedged || b.hedged || b.compound || len(b.stems) > len(a.stems)+maxExtra || a.Since().After(b.Since()) {
		return false
	}
	rest, ok := strings.CutPrefix(b.core+" ", a.core+" ")
	return ok && rest != "" && b.partedAfter(a) && len(text.LostProtected(a.Text, b.Text)) == 0
}

// maxExtra is the limit of additional words in covers.
const maxExtra = 6

// partedAfter reports whether s has a punctuation mark where the words of a end.
func (s *signature) partedAfter(a *signature) bool {
	n := len(a.tokens)
	if n == 0 || n >= len(s.tokens) {
		return false
	}
	for i := range a.tokens {
		if s.tokens[i].text != a.tokens[i].text || i > 0 && s.tokens[i].after != a.tokens[i].after {
			return false
		}
	}
	return s.tokens[n].after
}

// index returns the first word of s that may be t, or -1.
func (s *signature) index(t token) int {
	return slices.IndexFunc(s.tokens, func(u token) bool {
		if t.text == u.text {
			return true
		}
		if t.name || u.name { // which are not inflected, but for whose something is
			return s.names.same(t, u)
		}
		return slices.ContainsFunc(t.stems, func(x int32) bool { return slices.Contains(u.stems, x) })
	})
}

func hasDigit(s string) bool { return strings.ContainsFunc(s, unicode.IsDigit) }
