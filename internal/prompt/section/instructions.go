package section

import (
	"fmt"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Instructions are BASE_PROMPT.txt and the template for mode and tier. Small windows and models
// have room for few.

// instructionBudget is their common budget in tokens, by tier.
var instructionBudget = [highestTier + 1]int{1: 200, 500, 1000, 1500, 1500}

// minTemplate is the smallest cut template, in tokens.
const minTemplate = 40

// instructions are the contributors that count against the budget.
var instructions = []string{"core", "identity", "mandates", "safety", "base", "template"}

// FitInstructions fits the instructions among contents into the tier's budget. contents come from
// the contributors names. It cuts the template, at a line, down to a tenth of the budget.
// BASE_PROMPT.txt stays whole, including its safety rules; its owner shortens it with sections for
// tiers. Any excess is a problem.
func FitInstructions(t *Turn, names []string, contents []*Content) (*InstructionReport, []store.Problem) {
	tier := t.tier()
	if tier == 0 {
		return nil, nil
	}
	var in []*Content
	var template, whole *Content
	at := -1
	for i, c := range contents {
		if c == nil || !slices.Contains(instructions, names[i]) {
			continue
		}
		if in = append(in, c); names[i] == "template" {
			whole, at = c, i
		}
	}
	budget, took := instructionBudget[tier], instructionTokens(in...)
	report := &InstructionReport{Mode: t.Mode, Tier: tier, Budget: budget, Tokens: took}
	if took <= budget {
		return report, nil
	}
	least := max(budget/10, minTemplate) // if it has as many
	base := took - instructionTokens(whole)
	if whole != nil {
		template = cutContent(whole, max(least, budget-base))
		contents[at], report.Tokens = template, base+instructionTokens(template)
	}
	if base+least <= budget {
		return report, []store.Problem{{File: whole.Source, Text: fmt.Sprintf(
			"is too long for tier %d: it takes %d tokens, and BASE_PROMPT.txt leaves it %d of %d; the model reads %d of %d characters",
			tier, took-base, budget-base, budget, template.Size, whole.Size)}}
	}
	return report, []store.Problem{{File: baseFile, Text: fmt.Sprintf(
		"is too long for tier %d: it takes %d tokens, and %d are allowed together with the template. "+
			"All of it is sent; give that tier shorter sections (tiers: %d)",
		tier, base, budget, tier)}}
}

// instructionTokens returns the size of contents as sections. The parts of BASE_PROMPT.txt count as
// one, wherever the layout puts them.
func instructionTokens(contents ...*Content) int {
	n, based := 0, false
	for _, c := range contents {
		if c == nil || len(c.Lines) == 0 {
			continue
		}
		text := c.Text()
		if c.Note != "" {
			text += "\n(" + c.Note + ")"
		}
		if c.Source != baseFile || !based {
			n += Frame
		}
		based = based || c.Source == baseFile
		n += llm.EstimateTokens(text)
	}
	return n
}

// cutContent returns the beginning of c as a section of at most most tokens.
func cutContent(c *Content, most int) *Content {
	if instructionTokens(c) <= most {
		return c
	}
	whole := c.Text()
	for n := c.Size; ; n = n * 19 / 20 {
		text := strings.TrimRight(cutTail(whole, n), "\n ")
		part := NewContent(Content{Source: c.Source, Lines: linesOf(trust.Owner, text), Note: cutNote(text, c)})
		if n == 0 || instructionTokens(part) <= most {
			return part
		}
	}
}

// InstructionReport says how much of the tier's budget the instructions use, in tokens.
type InstructionReport struct {
	Mode   string `json:"mode,omitempty"`
	Tier   int    `json:"tier"`
	Tokens int    `json:"tokens"`
	Budget int    `json:"budget"`
}

func (i *InstructionReport) String() string {
	mode := ""
	if i.Mode != "" {
		mode = "mode " + i.Mode + ", "
	}
	return fmt.Sprintf("instructions: %stier %d; %d of %d tokens", mode, i.Tier, i.Tokens, i.Budget)
}
