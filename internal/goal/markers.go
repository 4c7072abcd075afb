package goal

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marker is a line with which the model tells the program how its goal stands:
//
//	[GOAL] Implement user authentication system
//	[CHECKPOINT] Design authentication flow - COMPLETED
//	[DECISION] Use JWT for authentication - LOCKED
//	[ARTIFACT] Created src/auth/login.ts
//	[NEXT] Implement JWT token generation
//
// Only text that the model wrote is ever looked at for markers, never what
// people, tools or files say.
type Marker struct {
	Kind string // GOAL, CHECKPOINT, DECISION, ARTIFACT or NEXT
	Text string // one line; of an artifact, its path

	Status   Step   // of a checkpoint: Pending when the line names none
	Implied  bool   // the line named no status
	Locked   bool   // of a decision
	Unlocked bool   // of a decision: said to be locked no more
	Action   string // of an artifact: created, modified or deleted
	Ended    Status // of a goal: Completed, Paused or Abandoned when it is said to be; else ""
}

// Limits on markers.
const (
	maxMarkerLine = 500 // characters; a longer line is text
	maxMarkers    = 50  // in one text; further ones are dropped
)

// ParseMarkers returns the markers in text outside of code, the first 50, and text without their
// lines: the blank ones before and behind a marker become one. dropped is how many more there were.
func ParseMarkers(text string) (markers []Marker, rest string, dropped int) {
	if !strings.Contains(text, "[") {
		return nil, text, 0
	}
	var kept []string
	gap := false // marker lines were taken out since the last line that was kept
	var in fence
	for line := range strings.SplitSeq(text, "\n") {
		if code := in.take(line); !code {
			if m, ok := parseMarker(line); ok {
				if gap = true; len(markers) < maxMarkers {
					markers = append(markers, m)
				} else {
					dropped++
				}
				continue
			}
		}
		if gap && isBlank(line) && (len(kept) == 0 || isBlank(kept[len(kept)-1])) {
			continue
		}
		gap = gap && isBlank(line) // further blanks behind it go as well
		kept = append(kept, line)
	}
	if len(markers) == 0 {
		return nil, text, 0
	}
	for gap && len(kept) > 0 && isBlank(kept[len(kept)-1]) { // nothing follows any more
		kept = kept[:len(kept)-1]
	}
	return markers, strings.Join(kept, "\n"), dropped
}

// ShowDraft is what may be shown of a text that is still being written: without
// its markers, a last line that may become one, and blanks at its end. What is shown
// later, and in the end, begins with it.
func ShowDraft(text string) string {
	whole, last := "", text
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		whole, last = text[:i], text[i+1:]
	}
	var in fence
	for line := range strings.SplitSeq(whole, "\n") {
		in.take(line)
	}
	if code := in.take(last); !code && mayBecomeMarker(last) {
		text = whole
	}
	_, rest, _ := ParseMarkers(text)
	for {
		i := strings.LastIndexByte(rest, '\n')
		if !isBlank(rest[i+1:]) {
			return strings.TrimRight(rest, " \t") // no more: a control character keeps a line from being a marker
		}
		if rest = rest[:max(i, 0)]; i < 0 {
			return ""
		}
	}
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// fence follows the code fences of a text.
type fence struct{ open string } // the marks that opened it, "" outside

var fenceForm = regexp.MustCompile("^(?:\\s|>)*(?:[-*+]\\s+|[0-9]{1,3}[.)]\\s+)?(`{3,}|~{3,})(.*)$")

// take goes on by a line, and says whether it is code or the edge of it.
func (f *fence) take(line string) bool {
	var m []string
	if strings.Contains(line, "```") || strings.Contains(line, "~~~") {
		m = fenceForm.FindStringSubmatch(line)
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

const kinds = `(goal|checkpoint|decision|artifact|next)`

var (
	// What may stand before a tag: signs and numbers, such as those of quotes, lists and emphasis, and a box.
	leadRE = regexp.MustCompile(`^[^\pL\[\x60]*(?:\[[ xX]\][^\pL\[\x60]*)?`)
	tagRE  = regexp.MustCompile(`(?i)^\[[*_]*` + kinds + `[*_]*\][*_:]*(?:[ \t]+[-–—])?[ \t]+(.+)$`)
	// What a line that may become a marker begins with, behind its lead.
	beginRE = regexp.MustCompile(`(?i)^(?:\[[*_]*(?:[ x]|` + prefixes(kinds) + `)?|\[[*_]*` + kinds + `[*_]*(?:\][*_:]*(?:[ \t].*)?)?)?$`)
)

// prefixes is an expression for the beginnings of the words of one.
func prefixes(words string) string {
	var all []string
	for w := range strings.SplitSeq(strings.Trim(words, "()"), "|") {
		for i := range w {
			all = append(all, w[:i+1])
		}
	}
	return strings.Join(all, "|")
}

// mayBecomeMarker reports whether a line that begins with this may be a marker.
func mayBecomeMarker(line string) bool {
	return beginRE.MatchString(line[len(leadRE.FindString(line)):]) && utf8.RuneCountInString(line) <= maxMarkerLine
}

// parseMarker reads one line.
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
	got := markerOf(strings.ToUpper(m[1]), text, lead)
	if got.Kind == "ARTIFACT" && got.Action == "" {
		return Marker{}, false
	}
	return got, strings.ContainsFunc(got.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func markerOf(kind, text, lead string) Marker {
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
		var word string
		m.Text, word = cutWords(text, kind)
		m.Locked = word == "locked" || word == "" && strings.Contains(lead, "🔒")
		m.Unlocked = word == "unlocked"
	case "GOAL":
		var word string
		m.Text, word = cutWords(text, kind)
		m.Ended = Status(word)
	default:
		m.Text = plain(text)
	}
	return m
}

// endings are the words and signs that can end a marker's line, by its kind, and what they mean; words
// without what parts them.
var endings = map[string]map[string]string{
	"CHECKPOINT": meanings("completed complete done finished ✅ ☑ ✔ [x]", string(Done), "inprogress started wip 🔄", string(InProgress),
		"pending todo notstarted planned blocked ⏳", string(Pending)),
	"DECISION": meanings("locked 🔒", "locked", "unlocked", "unlocked"),
	"GOAL": meanings("completed complete done finished ✅", string(Completed), "paused", string(Paused),
		"abandoned dropped", string(Abandoned)),
}

var verbs = meanings("created create added", "created", "modified updated changed edited", "modified", "deleted removed", "deleted")

func meanings(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		for w := range strings.FieldsSeq(pairs[i]) {
			all[w] = pairs[i+1]
		}
	}
	return all
}

var (
	// A word stands behind a dash or a bar, or in brackets; a sign needs nothing before it.
	endRE = regexp.MustCompile(`(?i)^(.*[^\s(|–—-])\s*(?:(?:\s[-–—]|[–—|(])[\s*_]*([a-z][a-z _-]*?)` +
		`|[-–—|(]?[\s*_]*(✅|☑|✔|🔄|⏳|🔒)\x{FE0F}?)[\s*_).!]*$`)
	// What a checkpoint may begin with.
	signRE = regexp.MustCompile(`^(✅|☑|✔|🔄|⏳)\x{FE0F}?\s*`)
	verbRE = regexp.MustCompile(`^[*_]*([A-Za-z]+)[*_:]*\s+(.+)$`)
)

// cutWords takes the endings of a kind of marker off the end of text, for as long as there are any, and
// returns what the last of them in the line means.
func cutWords(text, kind string) (rest, means string) {
	for text = plain(text); ; {
		m := endRE.FindStringSubmatch(text)
		if m == nil {
			return text, means
		}
		word := endings[kind][strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(m[2]+m[3]))]
		if word == "" {
			return text, means
		}
		text, means = plain(m[1]), cmp.Or(means, word)
	}
}

// parseCheckpoint returns status "" when nothing says one: not the end of the line, not a sign before
// the description or the tag. A line that is nothing but a status has no description.
func parseCheckpoint(text, lead string) (rest string, status Step) {
	rest, means := cutWords(text, "CHECKPOINT")
	if m := signRE.FindStringSubmatch(rest); m != nil {
		rest, means = rest[len(m[0]):], cmp.Or(means, endings["CHECKPOINT"][m[1]])
	}
	for sign, is := range endings["CHECKPOINT"] {
		if strings.Contains(strings.ToLower(lead), sign) {
			means = cmp.Or(means, is)
		}
	}
	rest = numbered.ReplaceAllString(rest, "")
	if endings["CHECKPOINT"][strings.ToLower(rest)] != "" {
		rest = ""
	}
	return rest, Step(means)
}

// parseArtifact returns no action for a line that names none.
func parseArtifact(text string) (action, path string) {
	if m := verbRE.FindStringSubmatch(text); m != nil {
		action, path = verbs[strings.ToLower(m[1])], m[2]
	}
	if code, ok := strings.CutPrefix(path, "`"); ok { // what stands behind it explains
		path, _, _ = strings.Cut(code, "`")
	}
	return action, plain(path)
}

// plain is text without emphasis, quotes or code marks around all of it.
func plain(text string) string {
	for _, mark := range []string{"**", "__", "*", "_", "`", `"`} {
		if text = strings.TrimSpace(text); len(text) > 2*len(mark) && strings.HasPrefix(text, mark) && strings.HasSuffix(text, mark) {
			text = text[len(mark) : len(text)-len(mark)]
		}
	}
	return strings.TrimSpace(text)
}
