package section

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// shippedModes have templates among the default files. Those of user are the owner's own; they begin
// as copies of the assistant's.
var shippedModes = []string{"assistant", "developer", "planning", "debugger", "user"}

// tierFile is where the template of a mode and tier stands.
func tierFile(mode string, tier int) string {
	return "prompts/" + mode + "/tier" + strconv.Itoa(tier) + ".txt"
}

// template finds the template for a mode and tier, with all that is wrong on the way. One that is
// empty gives way to that of the tier below.
func (f *files) template(mode string, tier int) (name string, t *text, problems []store.Problem) {
	for n := tier; n > 0; n-- {
		name = tierFile(mode, n)
		t = f.read(name)
		if t.problem != "" && t.problem != missing {
			problems = append(problems, store.Problem{File: name, Text: t.problem})
		}
		if strings.TrimSpace(t.text) != "" {
			break
		}
	}
	return name, t, problems
}

// gatherTemplate gathers the template of the turn's mode and tier.
func gatherTemplate(_ context.Context, q *Question) (*Content, error) {
	if q.turn.tier() == 0 || !isName(q.turn.Mode) {
		return nil, nil
	}
	name, t, problems := q.files.template(q.turn.Mode, q.turn.tier())
	q.problems = append(q.problems, problems...)
	return q.said(name, q.fill(t.text))
}

// checkTemplates says what the owner should look at in the templates of the shipped
// modes, together with the sections of BASE_PROMPT.txt.
func checkTemplates(f *files, sections []baseSection, tools []string) (problems []store.Problem) {
	for tier := 1; tier <= highestTier; tier++ {
		base := partContent(baseFile, partOf(sections, all, tier), tools, "Reverie") // a name of ordinary length
		for _, mode := range shippedModes {
			name, t, wrong := f.template(mode, tier)
			if t.builtin { // the next start writes it
				wrong = nil
			}
			template := NewContent(Content{Source: name, Lines: linesOf(trust.Owner, strings.TrimSpace(t.text))})
			_, long := hold(tier, []*Content{base, template}, 1)
			for _, p := range append(wrong, long...) {
				if !slices.Contains(problems, p) {
					problems = append(problems, p)
				}
			}
		}
	}
	return problems
}
