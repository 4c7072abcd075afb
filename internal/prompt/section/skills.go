package section

import (
	"context"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/skill"
)

// gatherSkills gathers the skills' table of contents. Its first line stands even
// when there are none.
func gatherSkills(_ context.Context, q *Question) (*Content, error) {
	skills, err := q.skills()
	if err != nil {
		return nil, err
	}
	toc := Content{Source: "skills", Lead: "Load a skill with read_file when relevant to the current task.",
		Rest: "the others stand in data/skills"}
	for _, s := range skills {
		toc.Lines, toc.from = append(toc.Lines, tocLine(s)), append(toc.from, s.Label.Integrity)
	}
	return NewContent(toc), nil
}

// tocLine is a skill's line in the table of contents.
func tocLine(s skill.Skill) string {
	line := "- " + OneLine(s.Path, 200)
	if s.Summary != "" {
		line += " — " + OneLine(s.Summary, 200)
	}
	return line
}

// Limits on the skills whose text is in the prompt.
const (
	mostActive  = 4
	activeChars = 16_000 // of all of them together; a text is shown whole or not at all
	mostHints   = 3
	mostMatches = 8 // skills that one message can call for
	loadedTurns = 6 // how long a skill stays that the model has read; one that a message called for says itself
)

// called is a skill that the conversation calls for.
type called struct {
	skill skill.Skill
	read  []*history.Message // results of reading its file, the newest first
}

// called returns the skills that are in use, the latest first, and after them those
// that the newest message calls for. A skill is in use for some turns after a person's
// message named one of its triggers, or the model read it.
func (q *Question) called() ([]called, error) {
	skills, err := q.skills()
	if err != nil || len(skills) == 0 {
		return nil, err
	}
	var out []called
	add := func(s skill.Skill, read ...*history.Message) {
		for i := range out {
			if out[i].skill == s {
				out[i].read = append(out[i].read, read...)
				return
			}
		}
		out = append(out, called{s, read})
	}
	results := map[string]*history.Message{} // by call
	past := q.turn.History
	for i, turn := len(past)-1, 0; i >= 0 && turn < maxTurns; i-- {
		m := &past[i]
		switch m.Role {
		case llm.Tool:
			results[m.CallID] = m
		case llm.Assistant:
			for _, call := range m.Calls {
				if s, ok := skillAt(skills, readPath(call)); ok && turn < loadedTurns && results[call.ID] != nil {
					add(s, results[call.ID])
				}
			}
		case llm.User:
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

// maxTurns is the most turns that a skill can ask to stay.
const maxTurns = 50

func skillAt(skills []skill.Skill, path string) (skill.Skill, bool) {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "./"), "data/")
	for _, s := range skills {
		if path != "" && strings.TrimPrefix(s.Path, "data/") == path {
			return s, true
		}
	}
	return skill.Skill{}, false
}

// inUse is the texts of the skills in use that there is room for, and the other skills.
type inUse struct {
	texts  Content
	others []skill.Skill
}

func (q *Question) findInUse() (inUse, error) {
	all, err := q.called()
	if err != nil {
		return inUse{}, err
	}
	u := inUse{texts: Content{Source: "active skills", Rest: "read the others with read_file"}}
	left := activeChars
	for _, s := range all {
		body, err := q.sources.Skills.Body(s.skill.ID())
		if err != nil { // it went a moment ago
			continue
		}
		text := "## " + s.skill.Name + "\n" + body
		size := utf8.RuneCountInString(text) + 1
		if len(u.texts.Lines) == mostActive || size > left {
			u.others = append(u.others, s.skill)
			continue
		}
		left -= size
		u.texts.Lines, u.texts.Names = append(u.texts.Lines, text), append(u.texts.Names, s.skill.Name)
		u.texts.In, u.texts.from = append(u.texts.In, s.saying(body)), append(u.texts.from, s.skill.Label.Integrity)
	}
	return u, nil
}

// saying returns the message in which the model has read body, all of it and as it is
// now; 0 = none.
func (c *called) saying(body string) int64 {
	for _, m := range c.read {
		if strings.Contains(m.Text, body) {
			return m.ID
		}
	}
	return 0
}

// gatherActiveSkills gathers the texts of the skills in use, the latest first.
func gatherActiveSkills(_ context.Context, q *Question) (*Content, error) {
	u, err := q.inUse()
	if err != nil {
		return nil, err
	}
	return q.saidAs(u.texts)
}

// gatherSkillHints gathers the skills that are called for, but whose text there is
// no room for.
func gatherSkillHints(_ context.Context, q *Question) (*Content, error) {
	u, err := q.inUse()
	if err != nil {
		return nil, err
	}
	hints := Content{Source: "skill hints", Lead: "These fit what was said; read one with read_file if you need it."}
	for _, s := range u.others[:min(len(u.others), mostHints)] {
		hints.Lines, hints.from = append(hints.Lines, tocLine(s)), append(hints.from, s.Label.Integrity)
	}
	return q.saidAs(hints)
}
