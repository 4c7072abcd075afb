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
		return q.part(q.sources.read(file), file, part), nil
	}
}

// part returns a part of t, a file of sections: the sections for this tier and these tools.
func (q *Question) part(t *text, file, part string) *Content {
	all, problems := q.sources.sectionsOf(file, t)
	q.problems = append(q.problems, problems...)
	sections := sectionsOfPart(all, part, q.turn.tier())
	if len(sections) == 0 && file == baseFile {
		// A file rewritten by its owner may lack the section. A job is better with the built-in
		// identity and safety rules than without.
		builtin, _ := parseBase(q.sources.builtin(baseFile).text, nil)
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

// parsedFile is what parseBase made of a file when it had this text.
type parsedFile struct {
	text     string
	sections []baseSection
	problems []store.Problem
}

// sectionsOf returns the sections of a file, not to be changed, and its problems. Only BASE_PROMPT.txt is required.
func (s *Sources) sectionsOf(file string, t *text) ([]baseSection, []store.Problem) {
	of, _ := s.cache.parsed.Load(file)
	p, ok := of.(parsedFile)
	if !ok || p.text != t.text {
		sections, problems := parseBase(t.text, s.KnownTools)
		p = parsedFile{t.text, sections, problems}
		s.cache.parsed.Store(file, p)
	}
	problems := slices.Clone(p.problems)
	if t.problem != "" && (file == baseFile || t.problem != missing) {
		problems = append([]store.Problem{{Text: t.problem}}, problems...)
	} else if file == baseFile && strings.TrimSpace(t.text) == "" {
		problems = append(problems, store.Problem{Text: "is empty: the model gets no instructions"})
	}
	for i := range problems {
		problems[i].File = file
	}
	return p.sections, problems
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
