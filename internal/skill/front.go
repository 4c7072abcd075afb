package skill

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// What holds where the front matter says nothing, and what it may say.
const (
	defaultPriority = 5
	lowestPriority  = 10 // 1 is the highest
	defaultTurns    = 4
	mostTurns       = 50
)

// head is what the beginning of a skill file says.
type head struct {
	summary         string
	triggers        []string
	priority, turns int
	integrity       trust.Integrity
	owner           string          // who had it written
	faults          []store.Problem // what cannot be taken as it stands, File left out
}

func (h *head) say(line int, format string, args ...any) {
	h.faults = append(h.faults, store.Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	fence         = "---"
)

// cutFront parts a skill's text from the front matter before it. line is that of
// the "---" above the front matter; 0 = there is none. Only the beginning of the
// file is searched; front matter without an end there is text like the rest.
func cutFront(text []byte) (front, body []byte, line int, closed bool) {
	searched := bytes.TrimPrefix(text[:min(len(text), headSize)], byteOrderMark)
	text = bytes.TrimPrefix(text, byteOrderMark)
	begin, n := -1, 0
	for at := 0; at < len(searched); {
		end := len(searched)
		if i := bytes.IndexByte(searched[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		n++
		switch is := string(bytes.TrimRight(searched[at:end], " \t\r\n")); {
		case is == fence && begin < 0:
			begin, line = end, n
		case is == fence:
			return searched[begin:at], text[end:], line, true
		case is != "" && begin < 0:
			return nil, text, 0, false
		}
		at = end
	}
	return nil, text, line, false
}

// readHead reads the beginning of a skill file. What is faulty counts as not
// being there.
func readHead(text []byte) head {
	h := head{priority: defaultPriority, turns: defaultTurns, integrity: trust.Owner}
	text = text[:min(len(text), headSize)]
	front, body, line, closed := cutFront(text)
	switch {
	case line > 0 && !closed:
		h.say(line, `the front matter that begins here has no end: close it with a line of its own that reads "---"`)
		h.strayLabel(text)
	case closed:
		if !h.readFront(front, line) {
			body = text // it was a rule, and what follows is text
			h.strayLabel(text)
		}
	default:
		h.strayLabel(text)
	}
	if h.summary == "" {
		h.summary = firstLine(body)
	}
	return h
}

// readFront reads front matter, whose "---" stands in the given line. It is false
// when that is none.
func (h *head) readFront(front []byte, line int) bool {
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		why := strings.SplitN(err.Error(), ": ", 3) // "yaml: line N: …", where N is at times one too few
		h.say(line, "the front matter below this line cannot be read: %s (put texts with signs into quotes)", tidy(why[len(why)-1]))
		h.strayLabel(front)
		return true
	}
	if len(doc.Content) == 0 { // empty, or only comments
		return true
	}
	fields := doc.Content[0]
	if fields.Kind != yaml.MappingNode {
		h.say(line, `between the first two "---" lines should stand fields, such as "triggers: deploy, release"`)
		return false
	}
	h.readLabel(fields, line)
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		switch at := line + key.Line; key.Value {
		case "triggers":
			h.readTriggers(value, line)
		case "priority":
			h.number(value, at, "priority", lowestPriority, &h.priority)
		case "turns":
			h.number(value, at, "turns", mostTurns, &h.turns)
		case "description":
			if value.Kind == yaml.ScalarNode {
				h.summary = text.Cut(tidy(value.Value), maxSummary)
			}
		}
	}
	return true
}

// readTriggers takes a list, or texts with commas between them.
func (h *head) readTriggers(value *yaml.Node, line int) {
	var texts []string
	for _, t := range value.Content {
		if t.Kind != yaml.ScalarNode || value.Kind != yaml.SequenceNode {
			h.say(line+t.Line, `triggers are texts with commas between them, such as "triggers: deploy, release"; `+
				`put those with signs into quotes`)
			break
		}
		texts = append(texts, t.Value)
	}
	if value.Kind == yaml.ScalarNode {
		texts = strings.Split(value.Value, ",")
	}
	for _, t := range texts {
		t = tidy(t)
		if n := len(t); n >= 2 && t[0] == t[n-1] && (t[0] == '"' || t[0] == '\'') {
			t = tidy(t[1 : n-1])
		}
		if t != "" {
			h.triggers = append(h.triggers, t)
		}
	}
}

// number reads a whole number from 1 to most.
func (h *head) number(value *yaml.Node, line int, name string, most int, into *int) {
	n, err := strconv.Atoi(value.Value)
	if value.Kind != yaml.ScalarNode || err != nil || n < 1 || n > most {
		h.say(line, "%s must be a whole number from 1 to %d: %d holds instead", name, most, *into)
		return
	}
	*into = n
}

// firstLine is the first line with text, without leading "#".
func firstLine(body []byte) string {
	body = bytes.TrimPrefix(body, byteOrderMark)
	for raw := range strings.FieldsFuncSeq(string(body), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line := tidy(raw)
		if said := strings.TrimLeft(line, "# "); line != fence && said != "" {
			return text.Cut(said, maxSummary)
		}
	}
	return ""
}

// frontOf parts a skill's text from its front matter; nil = it begins with none, or with a rule.
func frontOf(text []byte) (front, body []byte) {
	front, body, line, closed := cutFront(text)
	if closed && new(head).readFront(front, line) {
		return front, body
	}
	return nil, bytes.TrimPrefix(text, byteOrderMark)
}
