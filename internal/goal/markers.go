package goal

import (
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
	Priority string // of a goal; "" = not said
	Ended    Status // of a goal: Completed, Paused or Abandoned when it is said to be; else ""
}

// Limits on markers.
const (
	maxMarkerLine = 500 // characters; a longer line is text
	maxMarkers    = 50  // in one text; further ones are dropped
)

// ParseMarkers returns the markers in text, and text without their lines. All else
// stays as it is, but that a blank line before a marker and one behind it become
// one. Lines within code fences are never markers. Of more than 50 markers the
// first 50 count, and dropped says how many did not.
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

// What may stand before a tag: quotes, headings, bullets, numbers, boxes, signs and emphasis.
const leadForm = `^(?:\s|>|#{1,6}\s|[-*+•◦▪‣·–—]\s|[0-9]{1,3}[.)]\s|\[[ xX]\]\s|✅|☑|✔|🔄|⏳|🔒|🎯|\x{FE0F}|[*_])*`

const kinds = `(goal|checkpoint|decision|artifact|next)`

var (
	leadRE = regexp.MustCompile(leadForm)
	tagRE  = regexp.MustCompile(`(?i)^\[[\s*_]*` + kinds + `[\s*_]*\]([*_]*)(.*)$`)
	// What a line that may become a marker begins with, behind its lead.
	beginRE = regexp.MustCompile(`(?i)^(?:[-+•◦▪‣·–—]|[0-9]{1,3}[.)]?|#{1,6}|[\x60~]+|\[[ xX]?\]?|` +
		`\[[\s*_]*` + kinds + `[\s*_]*(?:\][*_]*(?:[\s:–—-].*)?)?)?$`)
	wordRE = regexp.MustCompile(`(?i)^\[[\s*_]*([a-z]*)$`)
)

// mayBecomeMarker reports whether a line that begins with this may be a marker.
func mayBecomeMarker(line string) bool {
	rest := line[len(leadRE.FindString(line)):]
	if m := wordRE.FindStringSubmatch(rest); m != nil { // the tag itself is not whole yet
		for kind := range strings.SplitSeq(kinds[1:len(kinds)-1], "|") {
			if strings.HasPrefix(kind, strings.ToLower(m[1])) {
				return true
			}
		}
	}
	return beginRE.MatchString(rest) && utf8.RuneCountInString(line) <= maxMarkerLine
}

// parseMarker reads one line.
func parseMarker(line string) (Marker, bool) {
	line = strings.TrimSuffix(line, "\r")
	if !strings.Contains(line, "[") || utf8.RuneCountInString(line) > maxMarkerLine || !utf8.ValidString(line) ||
		strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return Marker{}, false
	}
	lead := leadRE.FindString(line)
	m := tagRE.FindStringSubmatch(line[len(lead):])
	if m == nil {
		return Marker{}, false
	}
	text, ok := behindTag(m[3], m[2])
	if !ok {
		return Marker{}, false
	}
	for _, mark := range []string{"**", "__", "*", "_"} { // opened before the tag
		if m[2] == "" && strings.HasSuffix(strings.TrimRight(lead, " \t"), mark) && strings.HasSuffix(text, mark) {
			text = strings.TrimSuffix(text, mark)
		}
	}
	got := markerOf(strings.ToUpper(m[1]), text, lead)
	if got.Kind == "ARTIFACT" && got.Action == "" {
		return Marker{}, false
	}
	return got, strings.ContainsFunc(got.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// behindTag is the text that follows a tag, behind a blank, a colon or a dash.
// [Next](…) is a link, and "[next]: https://…" says where one leads.
func behindTag(after, emphasis string) (string, bool) {
	text := strings.TrimLeft(after, " \t")
	blank := text != after
	if r, size := utf8.DecodeRuneInString(text); strings.ContainsRune(":-–—", r) && size > 0 {
		rest := strings.TrimLeft(text[size:], "*_")
		if emphasis != "" || r != ':' {
			rest = text[size:]
		}
		switch trimmed := strings.TrimLeft(rest, " \t"); {
		case trimmed != rest:
			text = trimmed
		case r == ':' && !blank:
			text = rest
		case !blank:
			return "", false
		}
		if r == ':' && !blank && strings.Contains(text, "://") && !strings.ContainsAny(text, " \t") {
			return "", false
		}
	} else if !blank {
		return "", false
	}
	return strings.Join(strings.Fields(text), " "), text != ""
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
		m.Text, m.Ended, m.Priority = parseGoal(text)
	default:
		m.Text = plain(text)
	}
	return m
}
