package rehearsal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
)

// ownWords returns a person's own words in a user message: without the program's header ("[Sat
// 2026-11-21 09:14 CET]"), quotes of others, and appended notes and data.
func ownWords(msg string) string {
	msg = withoutQuotes(withoutHeader(msg))
	own := strings.TrimSpace(beforeNotes(msg))
	if own == "" { // it was a quote only
		own = strings.TrimSpace(msg)
	}
	return own
}

var quotedRE = lazyregexp.New(`^<data id="(\w+)" source="quoted">\n`)

// withoutQuotes removes the quotes at the start of a message.
func withoutQuotes(msg string) string {
	m := quotedRE().FindStringSubmatch(msg)
	if m == nil {
		return msg
	}
	if _, after, ok := strings.Cut(msg, "\n</data "+m[1]+">\n"); ok {
		return after
	}
	return msg
}

func withoutHeader(msg string) string {
	if !strings.HasPrefix(msg, "[") || strings.HasPrefix(msg, "[note") {
		return msg
	}
	line, rest, _ := strings.Cut(msg, "\n")
	if strings.HasSuffix(strings.TrimSpace(line), "]") {
		return rest
	}
	if _, after, ok := strings.Cut(line, "] "); ok {
		return strings.TrimSuffix(after+"\n"+rest, "\n")
	}
	return msg
}

// beforeNotes returns a message up to its first note or data block.
func beforeNotes(msg string) string {
	at := 0
	for line := range strings.SplitAfterSeq(msg, "\n") {
		if startsBlock(line) {
			return msg[:at]
		}
		at += len(line)
	}
	return msg
}

func startsBlock(line string) bool {
	return slices.ContainsFunc([]string{"<", "---", "[note", "[image ", "[file "}, func(mark string) bool { return strings.HasPrefix(line, mark) })
}

// line is one line of a request.
type line struct {
	text   string
	source string // of its data block: "memories", "tasks" …; "" = outside
}

var sourceRE = lazyregexp.New(`source="([^"]*)"`)

// dataLines returns the lines inside the <data …> blocks of a text.
func dataLines(text string) (lines []line) {
	in, source := false, ""
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(l, "</"):
			in = false
		case strings.HasPrefix(l, "<data"):
			in, source = true, ""
			if m := sourceRE().FindStringSubmatch(l); m != nil {
				source = m[1]
			}
		case in && l != "" && !strings.HasPrefix(l, "#"):
			lines = append(lines, line{withoutBullet(l), source})
		}
	}
	return lines
}

// withoutBullet removes a list mark.
func withoutBullet(l string) string {
	for _, mark := range []string{"- ", "* ", "• ", "> "} {
		l = strings.TrimSpace(strings.TrimPrefix(l, mark))
	}
	return l
}

// stopWords holds words without meaning for a search.
var stopWords = wordSet(`a an the this that these those and or but if of in on at to for from by with about as into
	i me my mine we us our you your he him his she her it its they them their
	am is are was were be been being do does did have has had can could will would shall should may might must
	what who whom whose which where when why how what's who's there here not no yes any some all
	know knows remember recall tell say said please again anything something everything thing things`)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// topics returns the content words of a text in lower case, without possessives and plurals.
func topics(text string) (out []string) {
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		w = strings.TrimSuffix(strings.Trim(w, "'"), "'s")
		if w != "" && !stopWords[w] {
			if len(w) > 3 && !strings.HasSuffix(w, "ss") {
				w = strings.TrimSuffix(w, "s")
			}
			out = append(out, w)
		}
	}
	return out
}

// fold normalizes a text for comparison.
func fold(s string) string {
	return strings.ToLower(strings.TrimRight(strings.Join(strings.Fields(s), " "), ".!"))
}

// capitalize capitalizes the first letter.
func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return strings.TrimPrefix(string(unicode.ToUpper(r)), "\uFFFD") + s[n:]
}

// clip returns a text on one line of at most n runes.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
