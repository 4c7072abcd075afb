package rehearsal

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// said is a person's own words in a user message: without the header in
// brackets that the program put before them ("[Sat 2026-11-21 09:14 CET]"), without what
// they quote of others, and without the notes and data that it put after them.
func said(msg string) string {
	msg = withoutQuotes(withoutHeader(msg))
	own := strings.TrimSpace(beforeNotes(msg))
	if own == "" { // then it was all theirs
		own = strings.TrimSpace(msg)
	}
	return own
}

var quotedRE = regexp.MustCompile(`^<data id="(\w+)" source="quoted">\n`)

// withoutQuotes leaves out the block of quotes that a message begins with.
func withoutQuotes(msg string) string {
	m := quotedRE.FindStringSubmatch(msg)
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

// beforeNotes is the part of a message before the first line that begins a note
// or a block of data.
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

// line is one line of what the model was sent.
type line struct {
	text   string
	source string // of its block of data: "memories", "tasks" …; empty outside of any
}

var sourceRE = regexp.MustCompile(`source="([^"]*)"`)

// dataLines are the lines within the <data …> blocks of a text.
func dataLines(text string) (lines []line) {
	in, source := false, ""
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(l, "</"):
			in = false
		case strings.HasPrefix(l, "<data"):
			in, source = true, ""
			if m := sourceRE.FindStringSubmatch(l); m != nil {
				source = m[1]
			}
		case in && l != "" && !strings.HasPrefix(l, "#"):
			lines = append(lines, line{bare(l), source})
		}
	}
	return lines
}

// bare is a line without its list mark.
func bare(l string) string {
	for _, mark := range []string{"- ", "* ", "• ", "> "} {
		l = strings.TrimSpace(strings.TrimPrefix(l, mark))
	}
	return l
}

// stop holds words that say nothing about what a sentence is about.
var stop = wordSet(`a an the this that these those and or but if of in on at to for from by with about as into
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

// topics are the words of a text that say what it is about, in one simple form:
// lower case, no possessive, no plural.
func topics(text string) (out []string) {
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		w = strings.TrimSuffix(strings.Trim(w, "'"), "'s")
		if w != "" && !stop[w] {
			if len(w) > 3 && !strings.HasSuffix(w, "ss") {
				w = strings.TrimSuffix(w, "s")
			}
			out = append(out, w)
		}
	}
	return out
}

// fold is a text in the form in which two texts are compared.
func fold(s string) string {
	return strings.ToLower(strings.TrimRight(strings.Join(strings.Fields(s), " "), ".!"))
}

// upperFirst makes the first letter a capital one.
func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return strings.TrimPrefix(string(unicode.ToUpper(r)), "\uFFFD") + s[n:]
}

// short is a text on one line of at most n runes.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
