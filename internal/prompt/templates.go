package prompt

import (
	"context"
	"iter"
	"strconv"
	"strings"
)

// highestTier is the tier of the largest windows. The lowest is 1; 0 is not known.
const highestTier = 5

// UserMode is the mode whose templates are the owner's own. They begin as copies of
// the assistant's. An edit waits for the next switch of the mode (Turn.Switched), the
// next conversation or the next start of the program: until then the text stands that
// was read at the switch. Every other template is looked at for each request.
const UserMode = "user"

// shippedModes have templates among the default files.
var shippedModes = []string{"assistant", "developer", "planning", "debugger", UserMode}

// tier of the turn, 0 if it is not known.
func (t *Turn) tier() int { return max(0, min(t.Tier, highestTier)) }

// tierFile is where the template of a mode and tier stands.
func tierFile(mode string, tier int) string {
	return "prompts/" + mode + "/tier" + strconv.Itoa(tier) + ".txt"
}

// templateFiles are the templates that may serve for a mode and tier, the best one
// first: the mode's own of this tier and below, the assistant's, and at last the
// developer's for tier 3.
func templateFiles(mode string, tier int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range []string{mode, "assistant"} {
			for n := tier; n > 0; n-- {
				if !yield(tierFile(m, n)) {
					return
				}
			}
		}
		yield(tierFile("developer", 3))
	}
}

// template finds the template for a mode and tier, with all that is wrong on the way.
// What the program carries itself serves only when there is none on disk.
func (f *files) template(mode string, tier int) (name string, t *text, problems []Problem) {
	wanted := tierFile(mode, tier)
	for _, builtin := range []bool{false, true} {
		for name := range templateFiles(mode, tier) {
			t := f.read(name)
			if !t.builtin && t.problem != "" && t.problem != missing && !builtin {
				problems = append(problems, Problem{File: name, Text: t.problem})
			}
			if t.builtin != builtin || strings.TrimSpace(t.text) == "" {
				continue
			}
			if builtin || name != wanted { // else it was looked at, and once is enough
				problems = append(problems, f.standsIn(wanted, name)...)
			}
			return name, t, problems
		}
	}
	return wanted, &text{problem: missing}, problems
}

// standsIn says why the file name serves in the place of the one that was wanted, if that
// is worth saying: a mode of the owner's own need not have every tier.
func (f *files) standsIn(wanted, name string) []Problem {
	t := f.read(wanted)
	switch {
	case t.builtin && name == wanted:
		return []Problem{{File: wanted, Text: t.problem}}
	case t.builtin:
		return []Problem{{File: wanted, Text: "is missing; " + name + " stands in for it"}}
	case t.exists && t.problem == "":
		return []Problem{{File: wanted, Text: "is empty; " + name + " stands in for it"}}
	}
	return nil
}

// gatherTemplate gathers the template of the turn's mode and tier.
func gatherTemplate(_ context.Context, q *question) (*content, error) {
	mode, tier := q.turn.Mode, q.turn.tier()
	if tier == 0 || !isName(mode) {
		return nil, nil
	}
	if mode == UserMode {
		return q.userTemplate(tier)
	}
	if !q.turn.Preview {
		q.a.mu.Lock()
		delete(q.a.users, string(q.turn.Talk)) // whatever comes next is another switch
		q.a.mu.Unlock()
	}
	name, t, problems := q.a.files.template(mode, tier)
	q.problems = append(q.problems, problems...)
	return q.said(name, q.fill(t.text))
}

// userTemplate is the template of UserMode that a room's conversation works with.
type userTemplate struct {
	conversation int64
	switched     int64
	tier         int
	name         string
	text         *text
}

// userTemplate gathers the template as it was when the mode was switched to.
func (q *question) userTemplate(tier int) (*content, error) {
	now := userTemplate{switched: q.turn.Switched, tier: tier}
	if n := len(q.turn.History); n > 0 {
		now.conversation = q.turn.History[n-1].Conversation
	}
	q.a.mu.Lock()
	known, ok := q.a.users[string(q.turn.Talk)]
	q.a.mu.Unlock()
	if ok && known.conversation == now.conversation && known.switched == now.switched && known.tier == tier {
		return q.said(known.name, q.fill(known.text.text))
	}
	var problems []Problem
	now.name, now.text, problems = q.a.files.template(UserMode, tier)
	q.problems = append(q.problems, problems...)
	if !q.turn.Preview { // to look at it is no switch
		q.a.mu.Lock()
		q.a.users[string(q.turn.Talk)] = now
		q.a.mu.Unlock()
	}
	return q.said(now.name, q.fill(now.text.text))
}

// checkTemplates says what the owner should look at in the templates of the shipped
// modes, together with the sections of BASE_PROMPT.txt.
func checkTemplates(f *files, sections []baseSection, tools []string) (problems []Problem) {
	for _, mode := range shippedModes {
		for tier := 1; tier <= highestTier; tier++ {
			if t := f.read(tierFile(mode, tier)); t.problem != "" && !t.builtin { // a missing one the next start writes
				problems = append(problems, Problem{File: tierFile(mode, tier), Text: t.problem})
			}
		}
	}
	for tier := 1; tier <= highestTier; tier++ {
		base := partContent(baseFile, partOf(sections, all, tier), tools, "Reverie") // a name of ordinary length
		said := false                                                                // of BASE_PROMPT.txt; once is enough
		for _, mode := range shippedModes {
			name, t, _ := f.template(mode, tier)
			template := newContent(content{source: name, lines: []string{strings.TrimSpace(t.text)}})
			_, found := hold(tier, []*content{base, template}, 1)
			for _, p := range found {
				if p.File != baseFile || !said {
					problems = append(problems, p)
				}
				said = said || p.File == baseFile
			}
		}
	}
	return problems
}
