package tool

import (
	"context"
	"fmt"
)

type addSkillArgs struct {
	Name          string `json:"skill_name" rule:"required" doc:"Letters, digits, - and _, such as weekly-report."`
	Summary       string `json:"summary" rule:"required" doc:"One line: when to use it."`
	Documentation string `json:"documentation" rule:"required" doc:"The whole procedure, in Markdown."`
}

func (s *Set) addSkill(_ context.Context, scope Scope, a addSkillArgs) (string, error) {
	sk, replaced, err := s.cfg.Skills.Add(a.Name, a.Summary, a.Documentation)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Skill %s is stored in %s: %s", sk.Name, sk.Path, sk.Summary)
	if replaced {
		text += "\nIt replaces the older version, of which a copy is kept."
	}
	return text, nil
}
