package tool

import (
	"context"
	"fmt"
)

type addSkillArgs struct {
	Name          string `json:"skill_name" rule:"required" doc:"Such as weekly-report: letters, digits, - and _."`
	Summary       string `json:"summary" rule:"required" doc:"One line: when to use it."`
	Documentation string `json:"documentation" rule:"required" doc:"The whole procedure, in Markdown."`
}

func (s *Set) addSkill(_ context.Context, scope Scope, a addSkillArgs) (string, error) {
	sk, replaced, err := s.cfg.Skills.Add(scope.Place(), scope.Label.Integrity, a.Name, a.Summary, a.Documentation)
	if err != nil {
		return "", err
	}
	who := "this room sees it"
	if scope.Private {
		who = "this person sees it, in direct chats"
	}
	text := fmt.Sprintf("Skill %s is stored in %s: %s\n", sk.Name, sk.Path, sk.Summary) +
		fmt.Sprintf("Only %s, until an owner shares it with `!skills share %s`.", who, sk.Name)
	if replaced {
		text += "\nIt replaces the older version, of which a copy is kept."
	}
	return text, nil
}
