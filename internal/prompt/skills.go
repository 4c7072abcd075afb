package prompt

import (
	"context"

	"reverie/internal/skill"
)

// gatherSkills gathers the skills' table of contents. Its first line stands even
// when there are none.
func gatherSkills(_ context.Context, q *question) (*content, error) {
	skills, err := q.skills()
	if err != nil {
		return nil, err
	}
	toc := content{source: "skills", lead: "Load a skill with read_file when relevant to the current task.", rest: "the others stand in data/skills"}
	for _, s := range skills {
		toc.lines, toc.from = append(toc.lines, tocLine(s)), append(toc.from, s.Label.Integrity)
	}
	return newContent(toc), nil
}

// tocLine is a skill's line in the table of contents.
func tocLine(s skill.Skill) string {
	line := "- " + oneLine(s.Path, 200)
	if s.Summary != "" {
		line += " — " + oneLine(s.Summary, 200)
	}
	return line
}
