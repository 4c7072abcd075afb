package llm

import (
	"regexp"
	"strings"
)

// thinkTag is a mark that some models put around what they think aloud.
var thinkTag = regexp.MustCompile(`(?i)</?think(?:ing)?>`)

// thoughts is what was read of a model's thinking in its text.
type thoughts struct {
	thought bool // there was some
	lone    bool // its closing tag had no opening one
}

// answerIn returns a model's text without its thinking. ended is false while the text still grows;
// then what may become thinking is held back. The rules:
//
//   - <think>…</think> (or <thinking>, in any case) is thinking;
//   - a closing tag without an opening one makes all before it thinking: some
//     chat templates put the opening tag into the prompt;
//   - a block that is never closed is thinking when its tag began a line (the
//     answer was cut), and text when it stood within one (it was talked about);
//   - in the answer, a tag within `code` or a fenced code block is text.
func answerIn(text string, ended bool) (answer string, found thoughts) {
	var out strings.Builder
	at, open := 0, -1 // where the text goes on, and where the open block began
	note := func(s string) { found.thought = found.thought || strings.TrimSpace(s) != "" }
	for _, tag := range thinkTag.FindAllStringIndex(text, -1) {
		closing := text[tag[0]+1] == '/'
		switch {
		case open < 0 && quoted(out.String()+text[at:tag[0]]), open >= 0 && !closing: // words
		case open >= 0:
			note(text[open:tag[0]])
			at, open = tag[1], -1
		case closing:
			note(out.String() + text[at:tag[0]])
			out.Reset()
			at, found.lone = tag[1], true
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
		out.WriteString(text[at : len(text)-halfTag(text[at:])])
	}
	return strings.TrimSpace(out.String()), found
}

// halfTag is the length of what may be the beginning of a tag at the end of s.
func halfTag(s string) int {
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

// quoted reports whether a tag that follows s stands in code.
func quoted(s string) bool {
	line := s[strings.LastIndexByte(s, '\n')+1:]
	return strings.Count(line, "`")%2 == 1 || fenced(s)
}

// fenced reports whether s ends inside a fenced code block.
func fenced(s string) bool {
	in := false
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			in = !in
		}
	}
	return in
}
