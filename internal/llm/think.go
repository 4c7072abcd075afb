package llm

import (
	"regexp"
	"strings"
)

// thinkTag matches the tags that some models put around their thinking.
var thinkTag = regexp.MustCompile(`(?i)</?think(?:ing)?>`)

// thoughts describes the thinking found in an answer.
type thoughts struct {
	thought  bool // there was some
	unopened bool // a closing tag had no opening one
}

// stripThinking returns the text without the model's thinking. While ended is false the text still
// grows, and what may become thinking is withheld. The rules:
func stripThinking(text string, ended bool) (answer string, found thoughts) {
	var out strings.Builder
	at, open := 0, -1 // where visible text continues, and where the open block starts
	note := func(s string) { found.thought = found.thought || strings.TrimSpace(s) != "" }
	for _, tag := range thinkTag.FindAllStringIndex(text, -1) {
		closing := text[tag[0]+1] == '/'
		switch {
		case open < 0 && insideCode(out.String()+text[at:tag[0]]), open >= 0 && !closing: // words
		case open >= 0:
			note(text[open:tag[0]])
			at, open = tag[1], -1
		case closing:
			note(out.String() + text[at:tag[0]])
			out.Reset()
			at, found.unopened = tag[1], true
		default:
			out.WriteString(text[at:tag[0]])
			at, open = tag[0], tag[1]
		}
	}
	line := out.String()
	line = line[strings.LastIndexByte(line, '\n')+1:]
	switch {
	case open >= 0 && strings.TrimSpace(line) == "":
		note(text[open:])
	case ended:
		out.WriteString(text[at:])
	case open < 0:
		out.WriteString(text[at : len(text)-partialTagLen(text[at:])])
	}
	return strings.TrimSpace(out.String()), found
}

// partialTagLen returns the length of an incomplete tag at the end of s.
func partialTagLen(s string) int {
	i := strings.LastIndexByte(s, '<')
	if i < 0 {
		return 0
	}
	for _, tag := range []string{"<thinking>", "</thinking>", "<think>", "</think>"} {
		if half := s[i:]; len(half) < len(tag) && strings.EqualFold(half, tag[:len(half)]) {
			return len(half)
		}
	}
	return 0
}

// insideCode reports whether a tag after s would be inside code.
func insideCode(s string) bool {
	line := s[strings.LastIndexByte(s, '\n')+1:]
	return strings.Count(line, "`")%2 == 1 || insideFence(s)
}

// insideFence reports whether s ends inside a fenced code block.
func insideFence(s string) bool {
	in := false
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			in = !in
		}
	}
	return in
}
