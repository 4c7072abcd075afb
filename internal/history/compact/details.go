package compact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// Details lists, word for word, the sentences with identifiers (numbers, codes,
// addresses, paths, names, decisions) that a summary has lost: of the messages it
// stands for, of the summary before it, and of what was listed beside that. They take
// at most so many tokens. What is locked comes first, and stays whatever the summary says
// of it; then what was decided and what people said, the newest before the older. They
// are returned in the order they were said.
func Details(gone []history.Message, before history.Compaction, summary string, most int) []string {
	has, listed := newCover(summary), &cover{}
	var all []detail
	for _, s := range sentences(before.Summary) {
		all = append(all, newDetail("", s, len(all)))
	}
	for _, line := range before.Details {
		who, text, ok := strings.Cut(line, ": ")
		if !ok || strings.Contains(who, " ") {
			who, text = "", line
		}
		all = append(all, newDetail(who, text, len(all)))
	}
	for i := range gone {
		m := &gone[i]
		for _, s := range sentences(m.Text) {
			all = append(all, newDetail(speaker(m), s, len(all)))
		}
	}
	slices.SortStableFunc(all, func(a, b detail) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return b.at - a.at
	})
	left, ofTools := most, most/4
	var kept []detail
	for _, d := range all {
		n := llm.EstimateTokens(d.line) + 2 // for the dash and the line end
		if len(d.names) == 0 || d.rank != lockedRank && has.covers(d) || listed.covers(d) || n > left || d.rank == lowRank && n > ofTools {
			continue
		}
		left -= n
		if d.rank == lowRank {
			ofTools -= n
		}
		listed.add(d.line)
		kept = append(kept, d)
	}
	slices.SortFunc(kept, func(a, b detail) int { return a.at - b.at })
	lines := make([]string, len(kept))
	for i, d := range kept {
		lines[i] = d.line
	}
	return lines
}

// detail is a sentence that may be kept.
type detail struct {
	line  string
	at    int
	rank  int      // the lowest is kept first
	names []string // its identifiers
	words []string // its other words of some length
}

// Ranks of details.
const (
	lockedRank  = iota // what may not be changed any more
	decidedRank        // what was decided
	saidRank           // codes, paths and addresses that a person said
	numberRank         // numbers that a person said
	otherRank          // the model's, and names
	askedRank          // questions
	lowRank            // results of tools
)

const maxSentence = 160 // runes

// newDetail weighs a sentence; who says it is "" when that stands in its words.
func newDetail(who, text string, at int) detail {
	text = history.OneLine(text, maxSentence)
	d := detail{line: text, at: at}
	if who != "" {
		d.line = who + ": " + text
	}
	kind := plainWord
	for i, w := range words(text) {
		switch k := kindOf(w, i == 0); {
		case k > plainWord:
			kind = max(kind, k)
			d.names = append(d.names, fold(w))
		default:
			if utf8.RuneCountInString(w) >= 4 {
				d.words = append(d.words, fold(w))
			}
		}
	}
	switch {
	case locked.MatchString(text):
		d.rank = lockedRank
		d.names = append(d.names, d.words...) // every word of it counts
	case decided.MatchString(text):
		d.rank = decidedRank
		d.names = append(d.names, d.words...)
	case who == toolSpeaker:
		d.rank = lowRank
	case strings.HasSuffix(strings.TrimSpace(text), "?"):
		d.rank = askedRank
	case kind == strongName && who != assistantSpeaker:
		d.rank = saidRank
	case kind == numberName && who != assistantSpeaker:
		d.rank = numberRank
	default:
		d.rank = otherRank
	}
	return d
}

// locked recognises the line forms in which a decision is put down for good, decided
// the words of people.
var (
	locked  = regexp.MustCompile(`\bDECISION_LOCKED:|\[DECISION\]|🔒|(?i:- locked)\.?$`)
	decided = regexp.MustCompile(`(?i)^\W*(decision|decided|agreed|beschlossen|entschieden|vereinbart)\b.*:|` +
		`\b(we|i) (have )?(decided|agreed)\b|` +
		`\bwir (haben )?.*(beschlossen|entschieden|vereinbart)\b`)
)

const (
	toolSpeaker      = "tool"
	assistantSpeaker = "assistant"
)

// speaker is who a message is of, in one word.
func speaker(m *history.Message) string {
	switch {
	case m.Role == llm.Tool:
		return toolSpeaker
	case m.Role == llm.Assistant:
		return assistantSpeaker
	case m.Sender == "":
		return "event"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(m.Sender, "@"), ":")
	if name == toolSpeaker || name == assistantSpeaker || name == "" {
		return "person"
	}
	return name
}

type nameKind int

const (
	plainWord  nameKind = iota
	weakName            // looks like a name
	numberName          // up to three digits
	strongName          // a longer number, a code, an address, a path
)

// kindOf says whether a word is an identifier.
func kindOf(w string, first bool) nameKind {
	n := utf8.RuneCountInString(w)
	digits, upper, lower, inner := 0, 0, 0, false
	for i, r := range w {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsUpper(r):
			upper++
			inner = inner || i > 0
		case unicode.IsLower(r):
			lower++
		case i > 0 && strings.ContainsRune("/\\@_:.=#", r): // words has taken those at the end
			return strongName
		case i == 0 && strings.ContainsRune("/~#@!$", r) && n > 1:
			return strongName
		}
	}
	switch {
	case digits > 0 && digits < 4 && upper+lower == 0:
		return numberName
	case digits > 0:
		return strongName
	case upper > 1 && n > 1, inner && lower > 0: // NASA, fileName
		return strongName
	case upper == 1 && !first && n > 1:
		return weakName
	}
	return plainWord
}

// words cuts a text at white space and takes punctuation off both ends.
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

func fold(w string) string { return strings.ToLower(w) }

// most of a message that is looked at for details: what is larger is read at both ends.
const maxRead = 20_000 // runes

var sentenceEnd = regexp.MustCompile(`[.!?。！？]["')\]]*\s+|[。！？]|\n+`)

// sentences cuts a text into sentences and lines.
func sentences(text string) []string {
	text = headTail(text, maxRead/2, maxRead/2)
	var out []string
	for from := 0; from < len(text); {
		to := len(text)
		if m := sentenceEnd.FindStringIndex(text[from:]); m != nil {
			to = from + m[1]
		}
		s := strings.Trim(text[from:to], " \t\n-*•>#")
		if s != "" && len(out) < maxSentences {
			out = append(out, s)
		}
		from = to
	}
	return out
}

const maxSentences = 400 // of one message

// cover tells what a text says, line by line.
type cover struct{ lines []map[string]bool }

func newCover(text string) *cover {
	c := &cover{}
	for _, s := range sentences(text) {
		c.add(s)
	}
	return c
}

func (c *cover) add(line string) {
	set := map[string]bool{}
	for _, w := range words(line) {
		set[fold(w)] = true
	}
	c.lines = append(c.lines, set)
}

// covers reports whether one line has all identifiers of d, and at least one of its
// other words: a number alone does not say what it is the number of.
func (c *cover) covers(d detail) bool {
	return slices.ContainsFunc(c.lines, func(line map[string]bool) bool {
		for _, n := range d.names {
			if !line[n] {
				return false
			}
		}
		return len(d.words) == 0 || slices.ContainsFunc(d.words, func(w string) bool { return line[w] })
	})
}
