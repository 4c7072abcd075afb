package section

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"reverie/internal/lazyregexp"
	"reverie/internal/store"
)

// A baseSection is one part of BASE_PROMPT.txt: the text from its marker to the next one, with its
// tools and tiers.
type baseSection struct {
	name  string
	line  int      // of the marker; 0 = the text before the first one
	any   []string // at least one of these tools; empty = no condition
	all   []string // every one of these
	not   []string // none of these
	tiers []int    // empty = every tier
	text  string   // without surrounding blank lines; may be empty
}

// enabled reports whether the section belongs into a prompt with these tools.
func (s baseSection) enabled(tools []string) bool {
	has := func(name string) bool { return slices.Contains(tools, name) }
	lacks := func(name string) bool { return !has(name) }
	return !slices.ContainsFunc(s.all, lacks) && !slices.ContainsFunc(s.not, has) && (len(s.any) == 0 || slices.ContainsFunc(s.any, has))
}

// inTier reports whether the section is for a tier. The unknown tier, 0, counts as the largest.
func (s baseSection) inTier(tier int) bool {
	if tier == 0 {
		tier = highestTier
	}
	return len(s.tiers) == 0 || slices.Contains(s.tiers, tier)
}

// parseBase splits a base prompt at its markers, lines like
//
//	<!-- section: NAME requires: a, b tiers: 3-5 -->
//
// "requires" means any of the named tools, "all" every one, "not" none of them. "requires: always",
// or no condition, means that the section is always on. "tiers" are window tiers; sections of one
// name may cover different tiers. Text before the first marker is always on. A faulty marker
// becomes a Problem, and the text after it is always on, so that no text is lost. known are the
// existing tools; nil = names are not checked.
func parseBase(text string, known []string) ([]baseSection, []store.Problem) {
	var problems []store.Problem
	sections := []baseSection{{name: "preamble"}}
	var body []string
	flush := func() {
		sections[len(sections)-1].text = trimBlankLines(body)
		body = nil
	}
	for i, line := range strings.Split(text, "\n") {
		problem := func(format string, args ...any) {
			problems = append(problems, store.Problem{Line: i + 1, Text: fmt.Sprintf(format, args...)})
		}
		var m []string
		if strings.Contains(line, "<!--") { // few lines do, and looking for this is fast
			m = marker().FindStringSubmatch(line)
		}
		if m == nil {
			if strings.Contains(line, "<!-- section:") {
				problem("a section marker must stand at the start of its line; this one is read as text")
			}
			body = append(body, line)
			continue
		}
		flush()
		s, err := parseMarker(m[1], m[2] != "")
		if err != nil {
			problem("section marker not understood (%v); the text after it is always on. "+
				"Write <!-- section: NAME requires: tool_a, tool_b -->", err)
			s = baseSection{name: "unnamed"}
		}
		s.line = i + 1
		for _, name := range slices.Concat(s.any, s.all, s.not) {
			if known != nil && !slices.Contains(known, name) {
				problem("section %s names an unknown tool %q", s.name, name)
			}
		}
		sections = append(sections, s)
		if strings.TrimSpace(m[3]) != "" {
			body = append(body, m[3])
		}
	}
	flush()
	return sections, problems
}

// marker matches a line that is meant as a section marker: its inside, its end, and the rest of the
// line. <!-- sections … --> is an ordinary comment.
var marker = lazyregexp.New(`^[ \t]*<!--[ \t]*(?i:section)(|[ \t:].*?)(?:(-->)(.*))?$`)

// parseMarker parses the text between "section" and "-->".
func parseMarker(inside string, closed bool) (baseSection, error) {
	rest, colon := strings.CutPrefix(strings.TrimLeft(inside, " \t"), ":")
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	switch {
	case !closed:
		return baseSection{}, fmt.Errorf("no --> on the same line")
	case !colon:
		return baseSection{}, fmt.Errorf("no colon after section")
	case len(words) == 0 || !isName(words[0]):
		return baseSection{}, fmt.Errorf("no section name")
	}
	s := baseSection{name: words[0]}
	lists := map[string]*[]string{"requires": &s.any, "all": &s.all, "not": &s.not, "tiers": {}}
	clause, named := "requires", 1
	for _, w := range words[1:] {
		if key, first, ok := strings.Cut(w, ":"); ok {
			if lists[key] == nil {
				return s, fmt.Errorf("only requires:, all:, not: and tiers: are conditions")
			}
			if named == 0 {
				return s, fmt.Errorf("%s: names nothing", clause)
			}
			if clause, w, named = key, first, 0; w == "" {
				continue
			}
		}
		named++
		switch {
		case clause == "tiers":
			if err := s.addTiers(w); err != nil {
				return s, err
			}
		case !isName(w):
			return s, fmt.Errorf("%q is no tool name", w)
		case w != "always" || clause != "requires": // "requires: always" is no condition
			*lists[clause] = append(*lists[clause], w)
		}
	}
	if named == 0 {
		return s, fmt.Errorf("%s: names nothing", clause)
	}
	return s, nil
}

// addTiers parses a tier or a range, such as 3-5.
func (s *baseSection) addTiers(text string) error {
	from, to, isRange := strings.Cut(strings.ReplaceAll(text, "–", "-"), "-")
	if !isRange {
		to = from
	}
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err != nil || err2 != nil || first < 1 || last > highestTier || first > last {
		return fmt.Errorf("%q is no tier; there are 1 to %d, and ranges like 3-%d", text, highestTier, highestTier)
	}
	for tier := first; tier <= last; tier++ {
		s.tiers = append(s.tiers, tier)
	}
	return nil
}

// isName reports whether s can be the name of a section or a tool.
func isName(s string) bool { return nameForm().MatchString(s) }

var nameForm = lazyregexp.New(`^[A-Za-z0-9_.-]+$`)

// trimBlankLines joins lines without blank ones at both ends and trailing white space.
func trimBlankLines(lines []string) string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	return strings.TrimRightFunc(strings.Join(lines, "\n"), unicode.IsSpace)
}
