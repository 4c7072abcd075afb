package prompt

import (
	"context"
	"slices"

	"reverie/internal/skill"
)

// skillCache holds the table of contents of the skills that some readers had last.
type skillCache struct {
	skills  []skill.Skill
	content *content
}

// maxSkillCaches is how many skillCaches there may be.
const maxSkillCaches = 100

// gatherSkills gathers the skills' table of contents. Its first line stands even
// when there are none.
func gatherSkills(_ context.Context, q *question) (*content, error) {
	skills, err := q.skills()
	if err != nil {
		return nil, err
	}
	a := q.a
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.skills[q.turn.Place().Readers()]
	if c.content != nil && sameSkills(c.skills, skills) {
		return c.content, nil
	}
	toc := content{source: "skills", lead: "Load a skill with read_file when relevant to the current task.", rest: "the others stand in data/skills"}
	for _, s := range skills {
		toc.lines, toc.from = append(toc.lines, tocLine(s)), append(toc.from, s.Label.Integrity)
	}
	if len(a.skills) >= maxSkillCaches {
		clear(a.skills)
	}
	c = skillCache{skills, newContent(toc)}
	a.skills[q.turn.Place().Readers()] = c
	return c.content, nil
}

// sameSkills reports whether a and b are the same slice, or read the same. The library
// returns the same one until a file changes, and never changes one.
func sameSkills(a, b []skill.Skill) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] || slices.Equal(a, b)
}

// tocLine is a skill's line in the table of contents.
func tocLine(s skill.Skill) string {
	line := "- " + oneLine(s.Path, 200)
	if s.Summary != "" {
		line += " — " + oneLine(s.Summary, 200)
	}
	return line
}
