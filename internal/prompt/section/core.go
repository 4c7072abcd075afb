package section

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Files that consist of sections.
const (
	baseFile   = "BASE_PROMPT.txt"
	sanityFile = "prompts/SANITY.txt"
)

// Parts of a file for gatherPart, besides section names.
const (
	all  = "all"
	rest = "rest" // what no other contributor shows
)

// ownSections are the sections with contributors of their own.
var ownSections = []string{"identity", "core", "safety"}

// gatherPart gathers a part of a file of sections.
func gatherPart(file, part string) gather {
	return func(_ context.Context, q *Question) (*Content, error) {
		return q.part(q.files.read(file), file, part), nil
	}
}

// part returns a part of t, a file of sections: the sections for this tier and these tools.
func (q *Question) part(t *text, file, part string) *Content {
	all, problems := sectionsOf(file, t, q.sources.KnownTools)
	q.problems = append(q.problems, problems...)
	sections := sectionsOfPart(all, part, q.turn.tier())
	if len(sections) == 0 && file == baseFile {
		// A file rewritten by its owner may lack the section. A job is better with the built-in
		// identity and safety rules than without.
		builtin, _ := parseBase(q.files.builtin(baseFile).text, nil)
		sections = sectionsOfPart(builtin, part, q.turn.tier())
	}
	return partContent(file, sections, q.turn.Tools, q.sources.Name)
}

// sectionsOfPart returns the sections of a part for a tier.
func sectionsOfPart(sections []baseSection, part string, tier int) []baseSection {
	return slices.DeleteFunc(slices.Clone(sections), func(s baseSection) bool {
		in := part == all || s.name == part || part == rest && !slices.Contains(ownSections, s.name)
		return !in || !s.inTier(tier)
	})
}

// sectionsOf parses a file of sections and returns its problems. Only BASE_PROMPT.txt is required.
func sectionsOf(file string, t *text, known []string) ([]baseSection, []store.Problem) {
	sections, problems := parseBase(t.text, known)
	if t.problem != "" && (file == baseFile || t.problem != missing) {
		problems = append([]store.Problem{{Text: t.problem}}, problems...)
	} else if file == baseFile && strings.TrimSpace(t.text) == "" {
		problems = append(problems, store.Problem{Text: "is empty: the model gets no instructions"})
	}
	for i := range problems {
		problems[i].File = file
	}
	return sections, problems
}

// partContent returns the enabled sections as a content; its source is the file.
func partContent(source string, sections []baseSection, tools []string, name string) *Content {
	var on []string
	for _, s := range sections {
		if s.text != "" && s.enabled(tools) {
			on = append(on, s.text)
		}
	}
	c := Content{Source: source}
	if len(on) > 0 {
		c.Lines = linesOf(trust.Owner, strings.ReplaceAll(strings.Join(on, "\n\n"), "{agent_name}", name))
	}
	return NewContent(c)
}
