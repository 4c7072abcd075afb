package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A baseSection is one part of BASE_PROMPT.txt: the text from its marker to the
// next one, and the tools and tiers that it is for.
type baseSection struct {
	name  string
	line  int      // of the marker; 0 for the text before the first one
	any   []string // at least one of these tools, unless empty
	all   []string // every one of these
	not   []string // none of these
	tiers []int    // these; empty = every one
	text  string   // without surrounding blank lines; may be empty
}

// on reports whether the section belongs into a prompt with these tools.
func (s baseSection) on(tools []string) bool {
	has := func(name string) bool { return slices.Contains(tools, name) }
	for _, name := range s.all {
		if !has(name) {
			return false
		}
	}
	return !slices.ContainsFunc(s.not, has) && (len(s.any) == 0 || slices.ContainsFunc(s.any, has))
}

// inTier reports whether the section is meant for a tier. One that is not known, 0,
// counts as the largest.
func (s baseSection) inTier(tier int) bool {
	if tier == 0 {
		tier = highestTier
	}
	return len(s.tiers) == 0 || slices.Contains(s.tiers, tier)
}

// parseBase cuts a base prompt at its markers, lines like
//
//	<!-- section: NAME requires: a, b tiers: 3-5 -->
//
// "requires" means any of the named tools, "all" every one, "not" none of them;
// "requires: always", or no condition at all, means that the section is always on.
// "tiers" means those of the model's window; several sections may have one name, each
// for tiers of its own. Text before the first marker is always on too. No text is ever lost: a marker
// that cannot be understood becomes a Problem, and what follows it is always on.
// known are the tools there are; nil means that names are not checked.
func parseBase(text string, known []string) ([]baseSection, []Problem) {
	var problems []Problem
	sections := []baseSection{{name: "preamble"}}
	var body []string
	flush := func() {
		sections[len(sections)-1].text = trimBlankLines(body)
		body = nil
	}
	for i, line := range strings.Split(text, "\n") {
		inside, after, ok := cutMarker(line)
		if !ok {
			if strings.Contains(line, "<!-- section:") {
				problems = append(problems, Problem{Line: i + 1, Text: "a section marker must stand at the start of its line; this one is read as text"})
			}
			body = append(body, line)
			continue
		}
		flush()
		s, err := parseMarker(inside)
		if err != nil {
			problems = append(problems, Problem{Line: i + 1, Text: fmt.Sprintf(
				"section marker not understood (%v); the text after it is always on. Write <!-- section: NAME requires: tool_a, tool_b -->", err)})
			s = baseSection{name: unnamed}
		}
		s.line = i + 1
		for _, name := range unknownNames(s, known) {
			problems = append(problems, Problem{Line: i + 1, Text: fmt.Sprintf("section %s names an unknown tool %q", s.name, name)})
		}
		sections = append(sections, s)
		if strings.TrimSpace(after) != "" {
			body = append(body, after)
		}
	}
	flush()
	if !slices.ContainsFunc(sections, func(s baseSection) bool { return s.name == unnamed }) { // it could be the missing one
		problems = append(problems, missingTiers(sections)...)
	}
	return sections, problems
}

// unnamed is the name of a section whose marker could not be understood.
const unnamed = "unnamed"

// missingTiers says in which tiers nothing stands for a section that every prompt
// should have.
func missingTiers(sections []baseSection) (problems []Problem) {
	for _, name := range apart {
		first := slices.IndexFunc(sections, func(s baseSection) bool { return s.name == name })
		if first < 0 {
			continue
		}
		var none []string
		for tier := 1; tier <= highestTier; tier++ {
			if len(partOf(sections, name, tier)) == 0 {
				none = append(none, strconv.Itoa(tier))
			}
		}
		if len(none) > 0 {
			problems = append(problems, Problem{Line: sections[first].line, Text: fmt.Sprintf(
				"no section %s is on in tier %s; write one with tiers: %s, or leave tiers: away", name, strings.Join(none, ", "), strings.Join(none, ", "))})
		}
	}
	return problems
}

var marker = regexp.MustCompile(`^[ \t]*<!--[ \t]*(?i:section)(|[ \t:].*?)(?:(-->)(.*))?$`)

// cutMarker reports whether line is meant as a section marker, and returns what
// stands inside it and what follows it on the line. <!-- sections … --> is an ordinary comment.
func cutMarker(line string) (inside, after string, ok bool) {
	m := marker.FindStringSubmatch(line)
	if m == nil {
		return "", "", false
	}
	if m[2] == "" {
		m[1] += " \x00" // no name may hold it, so parseMarker says what is wrong
	}
	return m[1], m[3], true
}

// parseMarker reads what stands between "section" and "-->".
func parseMarker(inside string) (baseSection, error) {
	if strings.HasSuffix(inside, "\x00") {
		return baseSection{}, fmt.Errorf("no --> on the same line")
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(inside, " \t"), ":")
	if !ok {
		return baseSection{}, fmt.Errorf("no colon after section")
	}
	words := strings.Fields(rest)
	if len(words) == 0 || !isName(words[0]) {
		return baseSection{}, fmt.Errorf("no section name")
	}
	s := baseSection{name: words[0]}
	clause, list := "", map[string]string{}
	for _, w := range words[1:] {
		if key, first, ok := strings.Cut(w, ":"); ok {
			if _, twice := list[key]; twice {
				return s, fmt.Errorf("%s: stands twice", key)
			}
			clause, w = key, first
		} else if clause == "" {
			if w == "always" {
				clause = "requires"
			} else {
				return s, fmt.Errorf("%q is no condition", w)
			}
		}
		list[clause] += " " + w
	}
	return s, s.setConditions(list)
}

// setConditions takes the lists of tool names of a marker.
func (s *baseSection) setConditions(list map[string]string) error {
	for _, c := range []struct {
		key string
		to  *[]string
	}{{"requires", &s.any}, {"all", &s.all}, {"not", &s.not}} {
		text, ok := list[c.key]
		if !ok {
			continue
		}
		delete(list, c.key)
		for _, name := range strings.Split(text, ",") {
			name = strings.TrimSpace(name)
			if name == "" {
				continue // a comma too many does no harm
			}
			if !isName(name) {
				return fmt.Errorf("%q is no tool name; names are separated by commas", name)
			}
			*c.to = append(*c.to, name)
		}
		if len(*c.to) == 0 {
			return fmt.Errorf("%s: names no tool", c.key)
		}
	}
	if text, ok := list["tiers"]; ok {
		delete(list, "tiers")
		var err error
		if s.tiers, err = parseTiers(text); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("only requires:, all:, not: and tiers: are conditions")
	}
	if slices.Contains(s.any, "always") {
		if len(s.any) > 1 {
			return fmt.Errorf("always must stand alone")
		}
		s.any = nil
	}
	return nil
}

// parseTiers reads a list of tiers and ranges of them: "1 2", "1, 3-5".
func parseTiers(text string) ([]int, error) {
	var tiers []int
	fields := strings.FieldsFunc(strings.ReplaceAll(text, "–", "-"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, field := range fields {
		from, to, isRange := strings.Cut(field, "-")
		if !isRange {
			to = from
		}
		first, last := tierNamed(from), tierNamed(to)
		if first == 0 || last == 0 {
			return nil, fmt.Errorf("%q is no tier; there are 1 to %d, and ranges like 3-%d", field, highestTier, highestTier)
		}
		if first > last {
			return nil, fmt.Errorf("tiers: %s runs backwards", field)
		}
		for tier := first; tier <= last; tier++ {
			if !slices.Contains(tiers, tier) {
				tiers = append(tiers, tier)
			}
		}
	}
	if len(tiers) == 0 {
		return nil, fmt.Errorf("tiers: names no tier")
	}
	return tiers, nil
}

// tierNamed returns the tier that s is the number of, or 0.
func tierNamed(s string) int {
	if len(s) == 1 && s[0] >= '1' && s[0] <= '0'+highestTier {
		return int(s[0] - '0')
	}
	return 0
}

// unknownNames lists the tools a section names that do not exist.
func unknownNames(s baseSection, known []string) []string {
	if known == nil {
		return nil
	}
	var out []string
	for _, list := range [][]string{s.any, s.all, s.not} {
		for _, name := range list {
			if !slices.Contains(known, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// isName reports whether s can be the name of a section or a tool.
func isName(s string) bool { return nameForm.MatchString(s) }

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// trimBlankLines joins lines, without the blank ones at both ends and what is blank behind
// the last one.
func trimBlankLines(lines []string) string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	return strings.TrimRightFunc(strings.Join(lines, "\n"), unicode.IsSpace)
}
