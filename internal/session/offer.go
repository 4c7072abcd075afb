package session

import (
	"slices"

	"reverie/internal/agent"
	"reverie/internal/llm"
	"reverie/internal/settings"
	"reverie/internal/tool"
)

// policyOf returns the tools that a mode allows.
func policyOf(m settings.Mode) tool.Policy {
	p := tool.Policy{Allow: m.Allow, Deny: m.Deny, Where: m.Name + " mode"}
	if free := slices.IndexFunc(settings.Modes(), func(o settings.Mode) bool { return len(o.Allow)+len(o.Deny) == 0 }); free >= 0 {
		p.Else = "`!mode " + settings.Modes()[free].Name + "` offers it"
	}
	return p
}

const topTier = 5

// toolBudget limits the tokens of tool descriptions, by tier; tier 0 = not known. Tools late in the
// catalog that exceed it are not offered.
var toolBudget = [topTier + 1]int{8000, 600, 2000, 3800, 5000, 8000}

// offers returns the tools by mode name and tier. The smallest tier gets brief descriptions.
// subSessions tells whether sub-sessions are enabled.
func offers(full, brief []llm.ToolSpec, subSessions bool) map[string][topTier + 1]agent.Offer {
	out := map[string][topTier + 1]agent.Offer{}
	for _, m := range settings.Modes() {
		var of [topTier + 1]agent.Offer
		for tier := range of {
			all := full
			if tier == 1 {
				all = brief
			}
			for _, s := range policyOf(m).Filter(all) {
				if (tier == 0 || tier >= tool.MinTier(s.Name)) &&
					(subSessions || s.Name != tool.SpawnSubSession) && of[tier].Tokens+agent.DescriptionTokens(s) <= toolBudget[tier] {
					of[tier].Add(s)
				}
			}
		}
		out[m.Name] = of
	}
	return out
}
