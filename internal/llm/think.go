package llm

import "strings"

// thinkTags are the marks some models put around what they think aloud.
var thinkTags = []struct {
	text string
	open bool
}{
	{"<think>", true}, {"<thinking>", true},
	{"</think>", false}, {"</thinking>", false},
}

// think parts a model's text into the answer and the thinking inside it, piece
// by piece as it streams in. How the text was cut into pieces never changes the
// result. The rules:
//
//   - <think>…</think> (or <thinking>, in any case) is thinking;
//   - a closing tag without an opening one makes all before it thinking: some
//     chat templates put the opening tag into the prompt;
//   - a block that is never closed is thinking when its tag began a line (the
//     answer was cut), and text when it stood within one (it was talked about);
//   - in the answer, a tag within `code` or a fenced code block is text. In a
//     block every closing tag closes: should it have been talk, the true one
//     that follows stands alone, and the second rule sets things right.
type think struct {
	hold bool // show nothing before a closing tag: this model is known to send no opening one

	rest      string          // undecided end of the input: may be the beginning of a tag
	text      strings.Builder // the answer so far
	inside    strings.Builder // the open block so far, its tag included
	thought   bool            // something stood in a finished block
	open      bool            // in a block
	lineStart bool            // its tag began a line
	lone      bool            // a closing tag without an opening one was seen
}

// drop notes that there was thinking. Nobody is shown it.
func (t *think) drop(s string) { t.thought = t.thought || strings.TrimSpace(s) != "" }

// write takes the next piece.
func (t *think) write(piece string) {
	s := t.rest + piece
	t.rest = ""
	for s != "" {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			t.literal(s)
			return
		}
		t.literal(s[:i])
		s = s[i:]
		tag, open, whole := cutTag(s)
		switch {
		case tag == "": // no tag
			t.literal(s[:1])
			s = s[1:]
		case !whole:
			t.rest = s
			return
		default:
			t.tag(tag, open)
			s = s[len(tag):]
		}
	}
}

// cutTag finds the tag that s begins with, or may begin with once more of it is
// there (whole is false then).
func cutTag(s string) (tag string, open, whole bool) {
	for _, t := range thinkTags {
		if len(s) >= len(t.text) && strings.EqualFold(s[:len(t.text)], t.text) {
			return s[:len(t.text)], t.open, true
		}
		if len(s) < len(t.text) && strings.EqualFold(s, t.text[:len(s)]) {
			return s, t.open, false
		}
	}
	return "", false, false
}

func (t *think) literal(s string) {
	if t.open {
		t.inside.WriteString(s)
	} else {
		t.text.WriteString(s)
	}
}

func (t *think) tag(tag string, open bool) {
	switch {
	case t.open && open, !t.open && quoted(t.text.String()):
		t.literal(tag)
	case t.open: // the end of the block
		t.drop(t.inside.String()[tagEnd(t.inside.String()):])
		t.inside.Reset()
		t.open = false
	case open:
		line := t.text.String()
		line = line[strings.LastIndexByte(line, '\n')+1:]
		t.lineStart = strings.TrimSpace(line) == ""
		t.open = true
		t.inside.WriteString(tag)
	default: // a closing tag alone
		t.drop(t.text.String())
		t.text.Reset()
		t.lone = true
	}
}

func tagEnd(block string) int { return strings.IndexByte(block, '>') + 1 }

// quoted reports whether a tag that follows s stands in code.
func quoted(s string) bool {
	line := s[strings.LastIndexByte(s, '\n')+1:]
	return strings.Count(line, "`")%2 == 1 || fenced(s)
}

// fenced reports whether s ends inside a fenced code block.
func fenced(s string) bool {
	if !strings.Contains(s, "```") {
		return false
	}
	in := false
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			in = !in
		}
	}
	return in
}

// visible is what people may read so far.
func (t *think) visible() string {
	if t.hold && !t.lone && !t.thought {
		return ""
	}
	return strings.TrimSpace(t.text.String())
}

// finish ends the input and returns the answer.
func (t *think) finish() (text string) {
	t.literal(t.rest)
	t.rest = ""
	if block := t.inside.String(); t.open && t.lineStart {
		t.drop(block[tagEnd(block):])
	} else if t.open {
		t.text.WriteString(block)
	}
	t.inside.Reset()
	t.open = false
	return strings.TrimSpace(t.text.String())
}
