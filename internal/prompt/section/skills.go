package section

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/skill"
	"reverie/internal/trust"
)

// gatherSkills gathers the skills' table of contents. Its first line is always shown.
func gatherSkills(_ context.Context, q *Question) (*Content, error) {
	skills, err := q.skills()
	if err != nil {
		return nil, err
	}
	toc := Content{Source: "skills", Lead: "Load a skill with read_file when relevant to the current task.",
		Rest: "the others stand in data/skills"}
	for _, s := range skills {
		toc.Lines = append(toc.Lines, tocLine(s))
	}
	return NewContent(toc), nil
}

// tocLine returns a skill's line in the table of contents.
func tocLine(s skill.Skill) Line {
	line := "- " + OneLine(s.Path, 200)
	if s.Unreviewed { // its words are foreign, the owner chose its name
		return Line{Text: line + " — from outside; no owner has read it yet", from: trust.Owner}
	}
	if s.Summary != "" {
		line += " — " + OneLine(s.Summary, 200)
	}
	return Line{Text: line, from: s.Label.Integrity}
}

// MaxActive is the largest number of skills whose text is in a prompt.
const MaxActive = 4

// Limits on the skills whose text is in the prompt.
const (
	activeChars = 16_000 // all together; a text is shown whole or not at all
	mostHints   = 3
	mostMatches = 8  // skills that one message can trigger
	loadedTurns = 6  // turns that a skill stays after the model read it; a triggered one has its own figure
	maxTurns    = 50 // limit of that figure
)

// activeSkill is a skill that the conversation uses.
type activeSkill struct {
	skill.Skill
	read []*history.Message // results of reading its file, the newest first
}

// activeSkills returns the skills in use: those of the configuration, then the others, the latest first,
// for some turns after a person's message named a trigger, or after the model read them.
func (q *Question) activeSkills() (out []activeSkill, err error) {
	skills, err := q.skills()
	if err != nil || len(skills) == 0 {
		return nil, err
	}
	add := func(s skill.Skill, read ...*history.Message) {
		i := slices.IndexFunc(out, func(c activeSkill) bool { return c.Skill == s })
		if i < 0 {
			i, out = len(out), append(out, activeSkill{Skill: s})
		}
		out[i].read = append(out[i].read, read...)
	}
	for _, s := range skills {
		if s.Always {
			add(s)
		}
	}
	results := map[string]*history.Message{} // by call
	past := q.turn.History
	for i, turn := len(past)-1, 0; i >= 0 && turn < maxTurns; i-- {
		m := &past[i]
		if m.Role == llm.Tool {
			results[m.CallID] = m
		}
		for _, call := range m.Calls {
			path := strings.TrimPrefix(strings.TrimPrefix(readPath(call), "./"), "data/")
			at := slices.IndexFunc(skills, func(s skill.Skill) bool { return strings.TrimPrefix(s.Path, "data/") == path })
			if at >= 0 && turn < loadedTurns && results[call.ID] != nil {
				add(skills[at], results[call.ID])
			}
		}
		if m.Role == llm.User {
			for _, s := range skill.Match(skills, m.Text, mostMatches) {
				if turn < s.Turns {
					add(s)
				}
			}
			turn++
		}
	}
	return out, nil
}

// selectedSkills holds the skills in use whose texts fit, and the others.
type selectedSkills struct {
	texts  Content
	others []skill.Skill
}

func (q *Question) selectSkills() (selectedSkills, error) {
	all, err := q.activeSkills()
	if err != nil {
		return selectedSkills{}, err
	}
	u := selectedSkills{texts: Content{Source: "active skills", Rest: "read the others with read_file"}}
	left := activeChars
	for _, s := range all {
		body, err := q.sources.Skills.Body(s.ID())
		if err != nil { // deleted meanwhile
			continue
		}
		text := "## " + s.Name + "\n" + body
		if strings.HasSuffix(s.Path, "/SKILL.md") {
			text = "## " + s.Name + " (its files are in " + path.Dir(s.Path) + ")\n" + body
		}
		size := utf8.RuneCountInString(text) + 1
		if len(u.texts.Lines) == MaxActive || size > left {
			u.others = append(u.others, s.Skill)
			continue
		}
		left -= size
		l := Line{Text: text, from: s.Label.Integrity}
		// This message shows the current text in full.
		if at := slices.IndexFunc(s.read, func(m *history.Message) bool { return strings.Contains(m.Text, body) }); at >= 0 {
			l.SaidIn = s.read[at].ID
		}
		u.texts.Lines = append(u.texts.Lines, l)
	}
	return u, nil
}

// gatherActiveSkills gathers the texts of the skills in use, the latest first.
func gatherActiveSkills(_ context.Context, q *Question) (*Content, error) {
	u, err := q.selectedSkills()
	if err != nil {
		return nil, err
	}
	return q.contentOrNil(u.texts)
}

// gatherSkillHints gathers the skills in use whose texts do not fit.
func gatherSkillHints(_ context.Context, q *Question) (*Content, error) {
	u, err := q.selectedSkills()
	if err != nil {
		return nil, err
	}
	hints := Content{Source: "skill hints", Lead: "These fit what was said; read one with read_file if you need it."}
	for _, s := range u.others[:min(len(u.others), mostHints)] {
		hints.Lines = append(hints.Lines, tocLine(s))
	}
	return q.contentOrNil(hints)
}
