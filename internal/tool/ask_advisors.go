package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/tool/advisor"
)

const askAdvisors = "ask_advisors"

type askAdvisorsArgs struct {
	Question string   `json:"question" rule:"required" doc:"The decision, with the choices there are."`
	Context  string   `json:"context" doc:"What they must know; they see nothing else."`
	Advisors []string `json:"advisors" doc:"Names, five at most; left out = all."`
}

// putToAdvisors asks advisors. Their answers may repeat all that the model has read, so they are trusted no
// more than that.
func putToAdvisors(s *Set, ctx context.Context, scope Scope, a askAdvisorsArgs) (string, error) {
	scope.MarkShown(scope.Label.Integrity)
	all, _ := s.cfg.Advisors.List()
	var asked []advisor.Advisor
	var list []string
	for _, one := range all {
		list = append(list, one.String())
		is := func(name string) bool { return strings.EqualFold(name, one.Name) }
		if len(a.Advisors) == 0 || slices.ContainsFunc(a.Advisors, is) {
			asked = append(asked, one)
		}
	}
	if len(a.Advisors) > 0 && len(asked) != len(a.Advisors) || len(asked) > advisor.Most {
		return "", refusal(fmt.Sprintf("Nobody was asked. Name at most %d of these advisors, each once: %s.",
			advisor.Most, strings.Join(list, "; ")))
	}
	return s.cfg.Advisors.Ask(ctx, asked, advisor.Question{
		Text: a.Question, Context: a.Context, Person: scope.User, Background: scope.System})
}

// mayAskAdvisors returns the refusal where there are none.
func mayAskAdvisors(s *Set, _ Scope) error {
	if s.cfg.Advisors.Any() {
		return nil
	}
	return refusal("There are no advisors any more. Decide without them.")
}
