package compact

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/lazyregexp"
	"reverie/internal/llm"
	"reverie/internal/store"
)

// Details returns sentences with identifiers (numbers, codes, addresses, paths, names, decisions)
// that a summary lost. They are verbatim and in order, from the messages that it replaces, from the
// previous summary and from its details, in at most limit tokens. Locked decisions come first,
// whatever the summary contains; then codes of people, then the newest.
func Details(removed []history.Message, before history.Compaction, summary string, limit int) []string {
	var has, listed coverage
	for _, s := range sentences(summary) {
		has.add(s)
	}
	var all []detail
	for _, s := range sentences(before.Summary) {
		all = append(all, rankSentence("", s, len(all)))
	}
	for _, line := range before.Details {
		who, text, ok := strings.Cut(line, ": ")
		if !ok || strings.Contains(who, " ") {
			who, text = "", line
		}
		all = append(all, rankSentence(who, text, len(all)))
	}
	for i := range removed {
		m := &removed[i]
		for _, s := range sentences(m.Text) {
			all = append(all, rankSentence(speaker(m), s, len(all)))
		}
	}
	slices.SortStableFunc(all, func(a, b detail) int { return cmp.Or(a.rank-b.rank, b.at-a.at) })
	left, ofTools := limit, limit/4
	var kept []detail
	for _, d := range all {
		n := llm.EstimateTokens(d.line) + 2 // for the dash and the line end
		if len(d.names) == 0 || d.rank != lockedRank && has.covers(d) || listed.covers(d) || n > left || d.rank == toolRank && n > ofTools {
			continue
		}
		left -= n
		if d.rank == toolRank {
			ofTools -= n
		}
		listed.add(d.line)
		kept = append(kept, d)
	}
	slices.SortFunc(kept, func(a, b detail) int { return a.at - b.at })
	return store.Map(kept, func(d detail) string { return d.line })
}

type detail struct {
	line  string
	at    int
	rank  int      // the lowest is kept first
	names []string // its identifiers, in lower case
	words []string // its other words of four letters or more
}

// Ranks of details.
const (
	lockedRank = iota // decisions that may not change
	codeRank          // codes, paths and addresses from people
	otherRank
	toolRank // results of tools
)

const maxSentence = 160 // runes

// rankSentence analyses and ranks a sentence; who is its speaker, or "" if text names it.
func rankSentence(who, text string, at int) detail {
	text = history.OneLine(text, maxSentence)
	d := detail{line: text, at: at, rank: otherRank}
	if who != "" {
		d.line = who + ": " + text
	}
	for i, w := range words(text) {
		isCode := code().MatchString(w)
		switch {
		case isCode || number().MatchString(w) || i > 0 && name().MatchString(w):
			d.names = append(d.names, strings.ToLower(w))
		case utf8.RuneCountInString(w) >= 4:
			d.words = append(d.words, strings.ToLower(w))
		}
		if isCode && who != assistantSpeaker {
			d.rank = codeRank
		}
	}
	switch {
	case locked().MatchString(text):
		d.rank = lockedRank
		d.names = append(d.names, d.words...) // every word matters
	case who == toolSpeaker:
		d.rank = toolRank
	}
	return d
}

var (
	// locked matches the markers of a locked decision.
	locked = lazyregexp.New(`\bDECISION_LOCKED:|\[DECISION\]|🔒|(?i:- locked)\.?$`)
	// code matches long numbers, codes, addresses, paths, and words with inner capitals.
	code   = lazyregexp.New(`\d.*\d.*\d.*\d|\d.*\pL|\pL.*\d|.[/\\@_:.=#]|^[/~#@!$].|\p{Lu}.*\p{Lu}|\p{Ll}.*\p{Lu}`)
	number = lazyregexp.New(`\d`)
	name   = lazyregexp.New(`^\p{Lu}.`)
)

const (
	toolSpeaker      = "tool"
	assistantSpeaker = "assistant"
)

// speaker names the author of a message in one word.
func speaker(m *history.Message) string {
	switch {
	case m.Role == llm.Tool:
		return toolSpeaker
	case m.Role == llm.Assistant:
		return assistantSpeaker
	case m.Sender == "":
		return "event"
	}
	name := chat.ShortName(m.Sender)
	if name == toolSpeaker || name == assistantSpeaker || name == "" {
		return "person"
	}
	return name
}

// words splits a text at white space and trims punctuation.
func words(text string) []string {
	fields := strings.Fields(text)
	out := fields[:0]
	for _, f := range fields {
		f = strings.TrimLeft(strings.TrimRight(f, ".,;:!?)]}>\"'`*_“”’»…/"), "([{<\"'`*_“„‘«-–")
		if f != "" {
			out = append(out, f)
		}
	}
	return out
}

// maxRead is how many runes of a message Details reads; of a longer one it reads both ends.
const maxRead = 20_000

var sentenceEnd = lazyregexp.New(`[.!?。！？]["')\]]*\s+|[。！？]|\n+`)

func sentences(text string) []string {
	text = headTail(text, maxRead/2, maxRead/2)
	var out []string
	for from := 0; from < len(text); {
		to := len(text)
		if m := sentenceEnd().FindStringIndex(text[from:]); m != nil {
			to = from + m[1]
		}
		s := strings.Trim(text[from:to], " \t\n-*•>#")
		if s != "" {
			out = append(out, s)
		}
		from = to
	}
	return out
}

// coverage is the set of words of each line of a text.
type coverage []map[string]bool

func (c *coverage) add(line string) {
	set := map[string]bool{}
	for _, w := range words(line) {
		set[strings.ToLower(w)] = true
	}
	*c = append(*c, set)
}

// covers reports whether one line has all identifiers of d. The line must also have at least one
// other word of d: a number alone may mean something else.
func (c coverage) covers(d detail) bool {
	return slices.ContainsFunc(c, func(line map[string]bool) bool {
		has := func(w string) bool { return line[w] }
		lacks := func(w string) bool { return !line[w] }
		return !slices.ContainsFunc(d.names, lacks) && (len(d.words) == 0 || slices.ContainsFunc(d.words, has))
	})
}
