package goal

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
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
	Kind string // GOAL, CHECKPOINT, DECISION, ARTIFACT or NEXT
	Text string // one line; for ARTIFACT, its path

	Status     CheckpointStatus // of CHECKPOINT; Pending if none is given
	Implied    bool             // no status was given
	Locked     bool             // of DECISION
	Unlocked   bool             // of DECISION: marked as unlocked
	Action     string           // of ARTIFACT: created, modified or deleted
	GoalStatus Status           // of GOAL: Completed, Paused, Abandoned or ""
}

// Limits on markers.
const (
	maxMarkerLine = 500 // characters; a longer line is not a marker
	maxMarkers    = 50  // in one text; the rest is dropped
)

// ParseMarkers returns the first 50 markers in text outside of code. rest is text without marker
// lines. Blank lines around a removed marker become one. dropped counts further markers.
func ParseMarkers(text string) (markers []Marker, rest string, dropped int) {
	if !strings.Contains(text, "[") {
		return nil, text, 0
	}
	var lines []string
	afterMarker := false // a marker was removed since the last line kept
	var fence codeFence
	for line := range strings.SplitSeq(text, "\n") {
		if code := fence.advance(line); !code {
			if m, ok := parseMarker(line); ok {
				if afterMarker = true; len(markers) < maxMarkers {
					markers = append(markers, m)
				} else {
					dropped++
				}
				continue
			}
		}
		if afterMarker && isBlank(line) && (len(lines) == 0 || isBlank(lines[len(lines)-1])) {
			continue
		}
		afterMarker = afterMarker && isBlank(line) // drop further blanks
		lines = append(lines, line)
	}
	if len(markers) == 0 {
		return nil, text, 0
	}
	for afterMarker && len(lines) > 0 && isBlank(lines[len(lines)-1]) { // no text follows
		lines = lines[:len(lines)-1]
	}
	return markers, strings.Join(lines, "\n"), dropped
}

// VisibleDraft returns the visible part of a text still being written. It omits markers, a last
// line that may become one, and trailing blanks. Later drafts and the final text begin with it.
func VisibleDraft(text string) string {
	whole, last := "", text
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		whole, last = text[:i], text[i+1:]
	}
	var fence codeFence
	for line := range strings.SplitSeq(whole, "\n") {
		fence.advance(line)
	}
	if code := fence.advance(last); !code && mayBecomeMarker(last) {
		text = whole
	}
	_, rest, _ := ParseMarkers(text)
	for {
		i := strings.LastIndexByte(rest, '\n')
		if !isBlank(rest[i+1:]) {
			return strings.TrimRight(rest, " \t") // more would hide the control character that makes it text
		}
		if rest = rest[:max(i, 0)]; i < 0 {
			return ""
		}
	}
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// codeFence tracks the code fences of a text.
type codeFence struct{ open string } // the opening marks; "" outside

var fencePattern = regexp.MustCompile("^(?:\\s|>)*(?:[-*+]\\s+|[0-9]{1,3}[.)]\\s+)?(`{3,}|~{3,})(.*)$")

// advance reads the next line and reports whether it is code or a fence.
func (f *codeFence) advance(line string) bool {
	var m []string
	if strings.Contains(line, "```") || strings.Contains(line, "~~~") {
		m = fencePattern.FindStringSubmatch(line)
	}
	if f.open != "" {
		if m != nil && strings.HasPrefix(m[1], f.open) && isBlank(m[2]) {
			f.open = ""
		}
		return true
	}
	if m == nil || m[1][0] == '`' && strings.Contains(m[2], "`") {
		return false
	}
	f.open = m[1]
	return true
}

const kindPattern = `(goal|checkpoint|decision|artifact|next)`

var (
	// leadRE matches what may precede a tag: quote, list and emphasis marks, numbers, and a box.
	leadRE = regexp.MustCompile(`^[^\pL\[\x60]*(?:\[[ xX]\][^\pL\[\x60]*)?`)
	tagRE  = regexp.MustCompile(`(?i)^\[[*_]*` + kindPattern + `[*_]*\][*_:]*(?:[ \t]+[-–—])?[ \t]+(.+)$`)
	// partialTagRE matches the beginning of a tag, after its lead.
	partialTagRE = regexp.MustCompile(`(?i)^(?:\[[*_]*(?:[ x]|` + prefixPattern(kindPattern) +
		`)?|\[[*_]*` + kindPattern + `[*_]*(?:\][*_:]*(?:[ \t].*)?)?)?$`)
)

// prefixPattern returns a pattern for the prefixes of the alternatives in words.
func prefixPattern(words string) string {
	var all []string
	for w := range strings.SplitSeq(strings.Trim(words, "()"), "|") {
		for i := range w {
			all = append(all, w[:i+1])
		}
	}
	return strings.Join(all, "|")
}

// mayBecomeMarker reports whether a line with this beginning may become a marker.
func mayBecomeMarker(line string) bool {
	return partialTagRE.MatchString(line[len(leadRE.FindString(line)):]) && utf8.RuneCountInString(line) <= maxMarkerLine
}

// parseMarker parses one line.
func parseMarker(line string) (Marker, bool) {
	line = strings.TrimSuffix(line, "\r")
	if utf8.RuneCountInString(line) > maxMarkerLine || !utf8.ValidString(line) ||
		strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return Marker{}, false
	}
	lead := leadRE.FindString(line)
	m := tagRE.FindStringSubmatch(line[len(lead):])
	if m == nil {
		return Marker{}, false
	}
	text := strings.Join(strings.Fields(m[2]), " ")
	if emphasis := lead[len(strings.TrimRight(lead, "*_")):]; emphasis != "" { // around all of it
		text = strings.TrimSuffix(text, emphasis)
	}
	got := newMarker(strings.ToUpper(m[1]), text, lead)
	if got.Kind == "ARTIFACT" && got.Action == "" {
		return Marker{}, false
	}
	return got, strings.ContainsFunc(got.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func newMarker(kind, text, lead string) Marker {
	m := Marker{Kind: kind}
	switch kind {
	case "ARTIFACT":
		m.Action, m.Text = parseArtifact(text)
	case "CHECKPOINT":
		m.Text, m.Status = parseCheckpoint(text, lead)
		if m.Implied = m.Status == ""; m.Implied {
			m.Status = Pending
		}
	case "DECISION":
		var suffix string
		m.Text, suffix = cutSuffixes(text, kind)
		m.Locked = suffix == "locked" || suffix == "" && strings.Contains(lead, "🔒")
		m.Unlocked = suffix == "unlocked"
	case "GOAL":
		var suffix string
		m.Text, suffix = cutSuffixes(text, kind)
		m.GoalStatus = Status(suffix)
	default:
		m.Text = trimEmphasis(text)
	}
	return m
}

// suffixMeanings maps words and signs that may end a marker, by kind, to their meaning. Words are
// without separators.
var suffixMeanings = map[string]map[string]string{
	"CHECKPOINT": meaningTable("completed complete done finished ✅ ☑ ✔ [x]", string(Done),
		"inprogress started wip 🔄", string(InProgress), "pending todo notstarted planned blocked ⏳", string(Pending)),
	"DECISION": meaningTable("locked 🔒", "locked", "unlocked", "unlocked"),
	"GOAL": meaningTable("completed complete done finished ✅", string(Completed), "paused", string(Paused),
		"abandoned dropped", string(Abandoned)),
}

var artifactVerbs = meaningTable("created create added", "created", "modified updated changed edited", "modified",
	"deleted removed", "deleted")

func meaningTable(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		for w := range strings.FieldsSeq(pairs[i]) {
			all[w] = pairs[i+1]
		}
	}
	return all
}

var (
	// suffixRE matches a suffix: a word after a dash or bar or in brackets, or a sign.
	suffixRE = regexp.MustCompile(`(?i)^(.*[^\s(|–—-])\s*(?:(?:\s[-–—]|[–—|(])[\s*_]*([a-z][a-z _-]*?)` +
		`|[-–—|(]?[\s*_]*(✅|☑|✔|🔄|⏳|🔒)\x{FE0F}?)[\s*_).!]*$`)
	// signRE matches a sign at the beginning of a checkpoint.
	signRE = regexp.MustCompile(`^(✅|☑|✔|🔄|⏳)\x{FE0F}?\s*`)
	verbRE = regexp.MustCompile(`^[*_]*([A-Za-z]+)[*_:]*\s+(.+)$`)
)

// cutSuffixes removes all suffixes of a kind from text. means is the meaning of the last one.
func cutSuffixes(text, kind string) (rest, means string) {
	for text = trimEmphasis(text); ; {
		m := suffixRE.FindStringSubmatch(text)
		if m == nil {
			return text, means
		}
		word := suffixMeanings[kind][strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(m[2]+m[3]))]
		if word == "" {
			return text, means
		}
		text, means = trimEmphasis(m[1]), cmp.Or(means, word)
	}
}

// parseCheckpoint splits a checkpoint into description and status. The status may be a suffix or a
// sign before the text or the tag; "" if there is no status.
func parseCheckpoint(text, lead string) (rest string, status CheckpointStatus) {
	rest, means := cutSuffixes(text, "CHECKPOINT")
	if m := signRE.FindStringSubmatch(rest); m != nil {
		rest, means = rest[len(m[0]):], cmp.Or(means, suffixMeanings["CHECKPOINT"][m[1]])
	}
	for sign, is := range suffixMeanings["CHECKPOINT"] {
		if strings.Contains(strings.ToLower(lead), sign) {
			means = cmp.Or(means, is)
		}
	}
	rest = numbered.ReplaceAllString(rest, "")
	if suffixMeanings["CHECKPOINT"][strings.ToLower(rest)] != "" {
		rest = ""
	}
	return rest, CheckpointStatus(means)
}

// parseArtifact splits an artifact into action and path; the action is "" if none is known.
func parseArtifact(text string) (action, path string) {
	if m := verbRE.FindStringSubmatch(text); m != nil {
		action, path = artifactVerbs[strings.ToLower(m[1])], m[2]
	}
	if code, ok := strings.CutPrefix(path, "`"); ok { // the rest is an explanation
		path, _, _ = strings.Cut(code, "`")
	}
	return action, trimEmphasis(path)
}

// trimEmphasis removes emphasis, quotes and code marks around the whole text.
func trimEmphasis(text string) string {
	for _, mark := range []string{"**", "__", "*", "_", "`", `"`} {
		if text = strings.TrimSpace(text); len(text) > 2*len(mark) && strings.HasPrefix(text, mark) && strings.HasSuffix(text, mark) {
			text = text[len(mark) : len(text)-len(mark)]
		}
	}
	return strings.TrimSpace(text)
}
