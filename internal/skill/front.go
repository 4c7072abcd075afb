package skill

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reverie/internal/lazyregexp"
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
	quoted        = lazyregexp.New(`'[^']*'`) // may be a value
	byteOrderMark = []byte("\xef\xbb\xbf")
	fence         = "---"
	opening       = lazyregexp.New(`\A(?:[ \t\r]*\n)*---[ \t\r]*(?:\n|\z)`)
	closing       = lazyregexp.New(`(?m)^---[ \t\r]*(?:\n|\z)`)
)

// splitFront splits off the front matter. line is the line of its opening "---"; 0 = none. Only the
// beginning of the file is searched; front matter that does not end there is text.
func splitFront(text []byte) (front, body []byte, line int, closed bool) {
	searched := bytes.TrimPrefix(text[:min(len(text), headSize)], byteOrderMark)
	text = bytes.TrimPrefix(text, byteOrderMark)
	first := opening().Find(searched)
	if first == nil {
		return nil, text, 0, false
	}
	line = 1 + bytes.Count(bytes.TrimRight(first, " \t\r\n"), []byte("\n"))
	front = searched[len(first):]
	last := closing().FindIndex(front)
	if last == nil {
		return nil, text, line, false
	}
	return front[:last[0]], text[len(first)+last[1]:], line, true
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
			oneLine(quoted().ReplaceAllString(why[len(why)-1], "…")))
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

// ReadFields reads the front matter of a file that is no skill, and the text below it. Each field must be a text
// and one of known. Values are single lines of at most 300 characters. File is not set in faults.
func ReadFields(file []byte, known ...string) (fields map[string]string, body []byte, faults []store.Problem) {
	h := readHead(file)
	fields = map[string]string{}
	for i := 0; h.fields != nil && i+1 < len(h.fields.Content); i += 2 {
		key, value := h.fields.Content[i], h.fields.Content[i+1]
		switch _, twice := fields[key.Value]; {
		case !slices.Contains(known, key.Value):
			h.addFault(h.line+key.Line, "there is no such field: the fields are %s", strings.Join(known, ", "))
		case twice, value.Kind != yaml.ScalarNode:
			h.addFault(h.line+key.Line, "%s must stand there once, as a text", key.Value)
		default:
			fields[key.Value] = text.Cut(oneLine(value.Value), maxSummary)
		}
	}
	_, body = splitValidFront(file)
	return fields, body, h.faults
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

// Keys of front matter that the program writes.
const (
	integrityKey = "integrity"
	ownerKey     = "written_by"
)

var labelKeys = []string{integrityKey, ownerKey}

// readLabel reads the label keys. Without them the skill was written by hand; invalid ones make it foreign.
func (h *head) readLabel(fields *yaml.Node, line int) {
	seen := map[string]string{}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		if key.Kind != yaml.ScalarNode || !slices.Contains(labelKeys, key.Value) {
			continue
		}
		if _, again := seen[key.Value]; again || value.Kind != yaml.ScalarNode || value.Value == "" {
			h.distrust(line+key.Line, key.Value+" must stand there once, with one value")
			return
		}
		seen[key.Value] = value.Value
	}
	if len(seen) == 0 {
		return
	}
	for _, level := range []trust.Integrity{trust.Foreign, trust.Guest, trust.User, trust.Owner} {
		if seen[integrityKey] == level.String() {
			h.integrity, h.owner = level, seen[ownerKey]
			return
		}
	}
	h.distrust(line, "integrity must be owner, user, guest or foreign; leave it and written_by out of what you wrote yourself")
}

var strayKey = lazyregexp.New(`(?m)^[ \t]*(integrity: *(owner|user|guest|foreign)|written_by:.*)[ \t\r]*$`)

// checkStrayLabel makes the skill foreign if text has a label key. text is no valid front matter.
// An edit may have broken the program's own.
func (h *head) checkStrayLabel(text []byte) {
	if at := strayKey().FindIndex(text); at != nil {
		h.distrust(1+bytes.Count(text[:at[0]], []byte("\n")), "integrity and written_by count only in front matter that can be read")
	}
}

func (h *head) distrust(line int, why string) {
	h.integrity, h.owner = trust.Foreign, ""
	h.addFault(line, "%s: the skill counts as foreign text until then", why)
}

// composeFile returns the text of a skill file: label keys, other lines of front matter, and body.
func composeFile(integrity trust.Integrity, owner string, front, body []byte) []byte {
	keys := integrityKey + ": " + integrity.String() + "\n"
	if owner != "" {
		keys += ownerKey + ": " + strconv.Quote(owner) + "\n"
	}
	return slices.Concat([]byte(fence+"\n"+keys), front, []byte(fence+"\n"), body)
}

// relabel returns text with another integrity and no other change; false if its front matter cannot be edited.
func relabel(text []byte, integrity trust.Integrity) ([]byte, bool) {
	was := readHead(text)
	_, body := splitValidFront(text)
	out := composeFile(integrity, was.owner, frontLinesWithout(text, labelKeys...), body)
	now := readHead(out)
	return out, now.integrity == integrity && now.owner == was.owner && now.summary == was.summary && len(now.faults) <= len(was.faults)
}
