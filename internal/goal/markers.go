package goal

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
)

// Marker is a line with which the model reports on its goal:
//
//	[GOAL] Implement user authentication system
//	[CHECKPOINT] Design authentication flow - COMPLETED
//	[DECISION] Use JWT for authentication - LOCKED
//	[ARTIFACT] Created src/auth/login.ts
//	[NEXT] Implement JWT token generation
//
// Only text written by the model is searched for markers, never words of people, tools or files.
type Marker struct {
	Kind  string // GOAL, CHECKPOINT, DECISION, ARTIFACT or NEXT
	Text  string // one line; for ARTIFACT, its path
	State string // a Status, a CheckpointStatus, "locked" or an Artifact.Action; "" = none is given
}

// Limits on markers.
const (
	maxMarkerLine = 500 // characters; a longer line is not a marker
	maxMarkers    = 50  // in one text; further ones are dropped
)

// ParseMarkers returns the first 50 markers in text outside of code. rest is text without marker
// lines. Blank lines around a removed marker become one.
func ParseMarkers(text string) (markers []Marker, rest string) {
	var lines []string
	removed := false // a marker was removed since the last line kept
	code := ""       // the marks that opened a block of code; "" = outside
	for line := range strings.SplitSeq(text, "\n") {
		fence := fenceLine().FindStringSubmatch(line)
		switch {
		case fence != nil && code == "":
			code = fence[1]
		case fence != nil && strings.HasPrefix(fence[1], code) && isBlank(fence[2]):
			code = ""
		case code == "":
			if m, ok := parseMarker(line); ok {
				if removed = true; len(markers) < maxMarkers {
					markers = append(markers, m)
				}
				continue
			}
		}
		if removed && isBlank(line) && (len(lines) == 0 || isBlank(lines[len(lines)-1])) {
			continue
		}
		removed = removed && isBlank(line) // drop further blanks
		lines = append(lines, line)
	}
	if len(markers) == 0 {
		return nil, text
	}
	if removed { // no text follows
		lines = dropBlankEnd(lines)
	}
	return markers, strings.Join(lines, "\n")
}

// VisibleDraft returns the visible part of a text still being written. It omits markers, a last
// line that may become one, and trailing blanks. Later drafts and the final text begin with it.
func VisibleDraft(text string) string {
	end := strings.LastIndexByte(text, '\n') + 1
	if last := text[end:]; partialMarker().MatchString(last) && utf8.RuneCountInString(last) <= maxMarkerLine {
		text = text[:end]
	}
	_, rest := ParseMarkers(text)
	rest = strings.Join(dropBlankEnd(strings.Split(rest, "\n")), "\n")
	return strings.TrimRight(rest, " \t") // more would hide the control character that makes it text
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

func dropBlankEnd(lines []string) []string {
	for len(lines) > 0 && isBlank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

const (
	// lead matches what may precede a tag: quote, list and emphasis marks, numbers, signs, and a box.
	lead = `^((?:\t|[^\pL\p{Cc}\[\x60])*(?:\[[ xX]\](?:\t|[^\pL\p{Cc}\[\x60])*)?)`
	tag  = `\[[*_]*(goal|checkpoint|decision|artifact|next)[*_]*\][*_:]*`
)

var (
	fenceLine  = lazyregexp.New("^[\\s>*+\\d.)-]*(`{3,}|~{3,})([^`]*)$")
	markerLine = lazyregexp.New(`(?i)` + lead + tag + `(?:[ \t]+[-–—])?[ \t]+((?:\t|\P{Cc})+)$`)
	// partialMarker matches the beginning of a marker. Other lines that begin with [ look like one until they
	// are longer than a tag.
	partialMarker = lazyregexp.New(`(?i)` + lead + `(?:\[[^\]]{0,12}|` + tag + `(?:[ \t].*)?)?$`)
	// stateEnd matches a state at the end of a marker: a word after a dash or bar, or in brackets.
	stateEnd = lazyregexp.New(`^(.*[^\s(|–—-])\s*(?:\s[-–—]|[–—|(])[\s*_]*(\pL[\pL _-]*?)[\s*_).!]*$`)
	// stateSign matches a state as a sign, anywhere in the line.
	stateSign = lazyregexp.New(`(?:[-–—|(]\s*)?(✅|☑|✔|🔄|⏳|🔒|\[[xX]\])\x{FE0F}?\)?`)
)

// states are the words and signs for a state, by kind of marker. Words are without separators.
var states = map[string]map[string]string{
	"GOAL": {"completed": "completed", "complete": "completed", "done": "completed", "finished": "completed", "paused": "paused",
		"abandoned": "abandoned", "dropped": "abandoned"},
	"CHECKPOINT": {"completed": "done", "complete": "done", "done": "done", "finished": "done", "✅": "done", "☑": "done", "✔": "done",
		"[x]": "done", "inprogress": "in progress", "started": "in progress", "wip": "in progress", "🔄": "in progress",
		"pending": "pending", "todo": "pending", "notstarted": "pending", "planned": "pending", "blocked": "pending", "⏳": "pending"},
	"DECISION": {"locked": "locked", "🔒": "locked"},
	"ARTIFACT": {"created": "created", "create": "created", "added": "created", "modified": "modified", "updated": "modified",
		"changed": "modified", "edited": "modified", "deleted": "deleted", "removed": "deleted"},
}

// stateOf returns the state that a word or sign stands for, or "".
func (m Marker) stateOf(word string) string {
	return states[m.Kind][strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(word))]
}

func parseMarker(line string) (m Marker, ok bool) {
	line = strings.TrimSuffix(line, "\r")
	part := markerLine().FindStringSubmatch(line)
	if part == nil || utf8.RuneCountInString(line) > maxMarkerLine || !utf8.ValidString(line) {
		return m, false
	}
	m.Kind = strings.ToUpper(part[2])
	text := strings.Join(strings.Fields(part[3]), " ")
	for _, sign := range stateSign().FindAllStringSubmatch(line, -1) {
		if state := m.stateOf(sign[1]); state != "" {
			m.State, text = state, strings.TrimSpace(strings.Replace(text, sign[0], "", 1))
		}
	}
	if strings.ContainsAny(part[1]+text[:min(1, len(text))], "*_`\"") { // emphasis around all of it
		text = strings.Trim(text, "*_`\" ")
	}
	if m.Kind == "ARTIFACT" {
		verb, path, _ := strings.Cut(text, " ")
		if code, ok := strings.CutPrefix(path, "`"); ok { // the rest is an explanation
			path, _, _ = strings.Cut(code, "`")
		}
		m.Text, m.State = strings.Trim(path, "*\"` "), m.stateOf(strings.Trim(verb, "*_:"))
		return m, m.State != "" && hasWord(m.Text)
	}
	for { // the last of several states counts
		end := stateEnd().FindStringSubmatch(text)
		if end == nil || m.stateOf(end[2]) == "" {
			break
		}
		text, m.State = end[1], cmp.Or(m.State, m.stateOf(end[2]))
	}
	m.Text = numbered().ReplaceAllString(text, "")
	return m, hasWord(m.Text) && m.stateOf(m.Text) == ""
}

func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
