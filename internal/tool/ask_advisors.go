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
	all := s.cfg.Advisors.List()
	asked := slices.DeleteFunc(slices.Clone(all), func(one advisor.Advisor) bool {
		is := func(name string) bool { return strings.EqualFold(name, one.Name) }
		return len(a.Advisors) > 0 && !slices.ContainsFunc(a.Advisors, is)
	})
	if len(asked) == 0 || len(asked) > advisor.Most || len(a.Advisors) > 0 && len(a.Advisors) != len(asked) {
		return "", refusal(fmt.Sprintf("Nobody was asked. Name at most %d of these advisors, each once: %v.", advisor.Most, all))
	}
	return s.cfg.Advisors.Ask(ctx, asked, advisor.Question{
		Text: strings.TrimSpace(a.Question + "\n\n" + a.Context), Person: scope.User, Background: scope.System})
}
