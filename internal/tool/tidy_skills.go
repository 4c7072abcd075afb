package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"reverie/internal/skill"
)

type tidySkillsArgs struct {
	Name    string `json:"skill_name" doc:"Which skill, as the list calls it."`
	Summary string `json:"summary" doc:"Its summary from now on: one short line that says when to use it."`
	Into    string `json:"into" doc:"The skill that it becomes a part of."`
}

// tidySkills shows the skills, or makes their table of contents shorter. What is
// written in them stays, and each earlier version is kept beside its file.
func (s *Set) tidySkills(_ context.Context, scope Scope, a tidySkillsArgs) (string, error) {
	switch {
	case a.Name == "" && a.Summary == "" && a.Into == "":
		return s.listSkills(scope)
	case a.Name == "":
		return "", faults{"skill_name: is missing; send the name of a skill from the list"}
	case (a.Summary == "") == (a.Into == ""):
		return "", faults{"send either summary or into with skill_name, one at a time"}
	}
	id, err := s.ownSkill(scope, a.Name)
	if err != nil {
		return "", tidyFailed(err)
	}
	done, kept := "", ""
	if a.Summary != "" {
		sk, version, err := s.cfg.Skills.Shorten(id, a.Summary, scope.Label.Integrity)
		if err != nil {
			return "", tidyFailed(err)
		}
		done, kept = fmt.Sprintf("The summary of %s is: %s", sk.Name, sk.Summary), version
	} else {
		into, err := s.ownSkill(scope, a.Into)
		if err != nil {
			return "", tidyFailed(err)
		}
		sk, version, err := s.cfg.Skills.Merge(id, into)
		if err != nil {
			return "", tidyFailed(err)
		}
		done, kept = fmt.Sprintf("%s is a section of %s now. If the summary of %[2]s does not say so, change it", a.Name, sk.Name), version
	}
	s.log.Info("a skill was tidied up; the earlier version can be put back in its place", "room", scope.Room, "skill", id, "into", a.Into, "kept", kept)
	return done + ". The earlier version is kept in " + kept + ".", nil
}

// tidyFailed lets an error of this machine be one, and tells the model about others.
func tidyFailed(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	return refusal("Nothing was changed: " + err.Error() + ".")
}

// ownSkill is the id of a skill that who asks had written here. Those of others, and those
// of everybody, are not tidied up for them.
func (s *Set) ownSkill(scope Scope, name string) (string, error) {
	own, err := s.ownSkills(scope)
	if err != nil {
		return "", err
	}
	for _, sk := range own {
		if sk.Name == name {
			return sk.ID(), nil
		}
	}
	return "", fmt.Errorf("there is no skill %q to be tidied up: send a name from the list", name)
}

func (s *Set) ownSkills(scope Scope) ([]skill.Skill, error) {
	skills, err := s.cfg.Skills.List(scope.Place())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(skills), func(sk skill.Skill) bool { return !sk.OwnedAt(scope.Place()) }), nil
}

func (s *Set) listSkills(scope Scope) (string, error) {
	skills, err := s.ownSkills(scope)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, sk := range skills {
		scope.Shows(sk.Label.Integrity)
		line := sk.Name + ": " + sk.Summary
		if len(sk.Triggers()) > 0 {
			line += " (has triggers, so it cannot become a part of another)"
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "There are no skills.", nil
	}
	return strings.Join(lines, "\n"), nil
}
