package prompt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/llm"
)

// Instructions are what BASE_PROMPT.txt and the template for mode and tier say. A
// small window, and a small model, has room for few of them.

// instructionBudget is how many tokens they may take together, by tier.
var instructionBudget = [highestTier + 1]int{1: 200, 500, 1000, 1500, 1500}

// instructs reports whether a section counts against the tier's budget.
func (p *place) instructs() bool {
	switch p.ID {
	case "core", "identity", "mandates", "safety", "base", "template":
		return true
	}
	return false
}

// heldInstructions is what the instructions came to last, and from what.
type heldInstructions struct {
	tier     int
	in, out  []*content
	problems []Problem
}

// holdInstructions makes the request's instructions fit the tier's budget.
func (r *request) holdInstructions() {
	tier := r.turn.tier()
	if tier == 0 {
		return
	}
	var few [8]*content // in the ordinary case nothing is allocated here
	in := few[:0]
	for i, c := range r.contents {
		if c != nil && r.rows[i].instructs() {
			in = append(in, c)
		}
	}
	held := &r.room.held
	if held.tier != tier || !slices.Equal(held.in, in) {
		*held = heldInstructions{tier: tier, in: slices.Clone(in)}
		held.out, held.problems = holdInstructions(tier, held.in)
	}
	n := 0
	for i, c := range r.contents {
		if c != nil && r.rows[i].instructs() {
			r.contents[i] = held.out[n]
			n++
		}
	}
	for _, p := range held.problems {
		r.problem(p)
	}
}

// holdInstructions returns the contents, of BASE_PROMPT.txt and of at most one template,
// as they fit the tier's budget. First the template gives way, at a line, down to a tenth of
// the budget; then the sections of BASE_PROMPT.txt that depend on tools, each whole, the
// last one first. Those that are always on stay, identity, core and safety among them.
// Whatever is left out, and whatever is too much all the same, is a problem.
func holdInstructions(tier int, in []*content) (out []*content, problems []Problem) {
	budget := instructionBudget[tier]
	took := instructionTokens(in)
	if took <= budget {
		return in, nil
	}
	out = slices.Clone(in)
	at := slices.IndexFunc(in, func(c *content) bool { return c.sections == nil && len(c.lines) > 0 })
	cut := func() {
		if at >= 0 {
			out[at] = in[at]
			others := instructionTokens(out) - instructionTokens(in[at:at+1])
			out[at] = cutContent(in[at], max(budget/10, useful, budget-others))
		}
	}
	cut()
	var gone []baseSection
	for instructionTokens(out) > budget {
		i, j := lastLoose(out)
		if i < 0 {
			break
		}
		s := out[i].sections[j]
		gone = slices.Insert(gone, 0, s)
		left := slices.Delete(slices.Clone(out[i].sections), j, j+1)
		out[i] = joinBase(left, leftOut(in[i].sections, left))
		cut() // what went may have left room for it
	}
	if at >= 0 && out[at] != in[at] {
		problems = append(problems, Problem{File: in[at].source, Text: fmt.Sprintf(
			"is too long for tier %d: it takes %d tokens, and with BASE_PROMPT.txt only %d are allowed; the model reads %s", tier,
			instructionTokens(in[at:at+1]), budget, strings.TrimPrefix(out[at].note, "cut off after "))})
	}
	if len(gone) > 0 {
		names := make([]string, len(gone))
		for i, s := range gone {
			names[i] = s.name
		}
		problems = append(problems, Problem{File: baseFile, Line: gone[0].line, Text: fmt.Sprintf(
			"too long for tier %d, where %d tokens are allowed together with the template; left out: %s. Give that tier shorter sections (tiers: %d)",
			tier, budget, strings.Join(names, ", "), tier)})
	}
	if n := instructionTokens(out); n > budget {
		problems = append(problems, Problem{File: baseFile, Text: fmt.Sprintf(
			"what is always on is too long for tier %d: with the template it takes %d tokens, and %d are allowed. All of it is sent; give that tier shorter sections (tiers: %d)",
			tier, n, budget, tier)})
	}
	return out, problems
}

// instructionTokens is what contents take as sections.
func instructionTokens(contents []*content) int {
	n := 0
	for _, c := range contents {
		if len(c.lines) > 0 {
			n += sectionFrame + llm.EstimateTokens(noted(strings.Join(c.lines, "\n"), c.note))
		}
	}
	return n
}

// noted is a text with a note on what is left out of it.
func noted(text, note string) string {
	if text == "" || note == "" {
		return text
	}
	return text + "\n(" + note + ")"
}

// lastLoose finds the last of the sections, as they stand in the file, that depends on
// tools; -1 if there is none.
func lastLoose(contents []*content) (at, index int) {
	at, line := -1, -1
	for i, c := range contents {
		for j, s := range c.sections {
			if !s.always() && s.line > line {
				at, index, line = i, j, s.line
			}
		}
	}
	return at, index
}

// leftOut is the note of a content that had some sections more.
func leftOut(had, has []baseSection) string {
	var names []string
	for _, s := range had {
		if !slices.ContainsFunc(has, func(o baseSection) bool { return o.line == s.line }) {
			names = append(names, s.name)
		}
	}
	return "left out: " + strings.Join(names, ", ")
}

// cutContent returns c, or as much of its beginning as a section of at most most tokens
// holds.
func cutContent(c *content, most int) *content {
	if instructionTokens([]*content{c}) <= most {
		return c
	}
	whole := strings.Join(c.lines, "\n")
	for n := c.size; ; n = n * 19 / 20 {
		text := strings.TrimRight(cutTail(whole, n), "\n ")
		part := newContent(content{source: c.source, lines: []string{text},
			note: fmt.Sprintf("cut off after %d of %d characters", utf8.RuneCountInString(text), c.size)})
		if n == 0 || instructionTokens([]*content{part}) <= most {
			return part
		}
	}
}

// InstructionReport says how much of the tier's budget the instructions take, in tokens.
type InstructionReport struct {
	Mode   string `json:"mode,omitempty"`
	Tier   int    `json:"tier"`
	Tokens int    `json:"tokens"`
	Budget int    `json:"budget"`
}

// instructions reports on the sections of the prefix; nil when the tier is not known.
func (r *request) instructions(sections []SectionReport) *InstructionReport {
	tier := r.turn.tier()
	if tier == 0 {
		return nil
	}
	rep := &InstructionReport{Mode: r.turn.Mode, Tier: tier, Budget: instructionBudget[tier]}
	for i := range r.rows {
		for _, s := range sections {
			if s.ID == r.rows[i].ID && r.rows[i].instructs() {
				rep.Tokens += s.Tokens
			}
		}
	}
	return rep
}

func (i *InstructionReport) String() string {
	mode := ""
	if i.Mode != "" {
		mode = "mode " + i.Mode + ", "
	}
	return fmt.Sprintf("instructions: %stier %d; %d of %d tokens", mode, i.Tier, i.Tokens, i.Budget)
}
