package skill

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Defaults and bounds of front matter.
const (
	defaultPriority = 5
	lowestPriority  = 10 // 1 is the highest
	defaultTurns    = 4
	mostTurns       = 50
)

// head holds the data from the beginning of a skill file.
type head struct {
	summary         string
	triggers        []string
	priority, turns int
	integrity       trust.Integrity
	owner           string          // Matrix ID
	faults          []store.Problem // faults found; File is not set

	line   int        // of the opening "---"; 0 = none
	fields *yaml.Node // of the front matter; nil = it cannot be read
}

func (h *head) addFault(line int, format string, args ...any) {
	h.faults = append(h.faults, store.Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

var (
	quoted        = regexp.MustCompile(`'[^']*'`) // may be a value
	byteOrderMark = []byte("\xef\xbb\xbf")
	fence         = "---"
)

// splitFront splits off the front matter. line is the line of its opening "---"; 0 = none. Only the
// beginning of the file is searched; front matter that does not end there is text.
func splitFront(text []byte) (front, body []byte, line int, closed bool) {
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

// readHead parses the beginning of a skill file. Faulty values are ignored and reported.
func readHead(text []byte) head {
	h := head{priority: defaultPriority, turns: defaultTurns, integrity: trust.Owner}
	text = text[:min(len(text), headSize)]
	front, body, line, closed := splitFront(text)
	if h.line = line; line > 0 && !closed {
		h.addFault(line, `the front matter that begins here has no end: close it with a line of its own that reads "---"`)
	}
	if !closed || !h.readFront(front, line) { // none, or a horizontal rule: all is text
		body = text
		h.checkStrayLabel(text)
	}
	if h.summary == "" {
		h.summary = firstLine(body)
	}
	return h
}

// readFront parses front matter that opens at line. It returns false if the text is not front matter.
func (h *head) readFront(front []byte, line int) bool {
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		why := strings.SplitN(err.Error(), ": ", 3) // "yaml: line N: …", with N sometimes off by one
		h.addFault(line, "the front matter below this line cannot be read: %s (put texts with signs into quotes)",
			oneLine(quoted.ReplaceAllString(why[len(why)-1], "…")))
		h.checkStrayLabel(front)
		return true
	}
	fields := &yaml.Node{Kind: yaml.MappingNode}
	if len(doc.Content) > 0 { // not empty, nor only comments
		fields = doc.Content[0]
	}
	if fields.Kind != yaml.MappingNode {
		h.addFault(line, `between the first two "---" lines should stand fields, such as "triggers: deploy, release"`)
		return false
	}
	h.fields = fields
	h.readLabel(fields, line)
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		switch at := line + key.Line; key.Value {
		case "triggers":
			h.readTriggers(value, line)
		case "priority":
			h.readNumber(value, at, "priority", lowestPriority, &h.priority)
		case "turns":
			h.readNumber(value, at, "turns", mostTurns, &h.turns)
		case "description":
			if value.Kind == yaml.ScalarNode {
				h.summary = text.Cut(oneLine(value.Value), maxSummary)
			}
		}
	}
	return true
}

// readTriggers reads a list, or texts separated by commas.
func (h *head) readTriggers(value *yaml.Node, line int) {
	var texts []string
	for _, t := range value.Content {
		if t.Kind != yaml.ScalarNode || value.Kind != yaml.SequenceNode {
			h.addFault(line+t.Line, `triggers are texts with commas between them, such as "triggers: deploy, release"; `+
				`put those with signs into quotes`)
			break
		}
		texts = append(texts, t.Value)
	}
	if value.Kind == yaml.ScalarNode {
		texts = strings.Split(value.Value, ",")
	}
	for _, t := range texts {
		t = oneLine(t)
		if n := len(t); n >= 2 && t[0] == t[n-1] && (t[0] == '"' || t[0] == '\'') {
			t = oneLine(t[1 : n-1])
		}
		if t != "" {
			h.triggers = append(h.triggers, t)
		}
	}
}

// readNumber reads a whole number from 1 to most.
func (h *head) readNumber(value *yaml.Node, line int, name string, most int, into *int) {
	n, err := strconv.Atoi(value.Value)
	if value.Kind != yaml.ScalarNode || err != nil || n < 1 || n > most {
		h.addFault(line, "%s must be a whole number from 1 to %d: %d holds instead", name, most, *into)
		return
	}
	*into = n
}

// firstLine returns the first line with text, without leading "#".
func firstLine(body []byte) string {
	body = bytes.TrimPrefix(body, byteOrderMark)
	for raw := range strings.FieldsFuncSeq(string(body), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line := oneLine(raw)
		if said := strings.TrimLeft(line, "# "); line != fence && said != "" {
			return text.Cut(said, maxSummary)
		}
	}
	return ""
}

// splitValidFront splits off the front matter; nil if there is no valid one.
func splitValidFront(text []byte) (front, body []byte) {
	front, body, line, closed := splitFront(text)
	if closed && new(head).readFront(front, line) {
		return front, body
	}
	return nil, bytes.TrimPrefix(text, byteOrderMark)
}
