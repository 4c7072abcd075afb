package session

import (
	"slices"

	"reverie/internal/agent"
	"reverie/internal/llm"
	"reverie/internal/settings"
	"reverie/internal/tool"
)

// policy is which tools there are in the mode.
func policyOf(m settings.Mode) tool.Policy {
	p := tool.Policy{Allow: m.Allow, Deny: m.Deny, Where: m.Name + " mode"}
	if free := slices.IndexFunc(settings.Modes(), func(o settings.Mode) bool { return len(o.Allow)+len(o.Deny) == 0 }); free >= 0 {
		p.Else = "`!mode " + settings.Modes()[free].Name + "` offers it"
	}
	return p
}

const topTier = 5

// toolBudget is how many tokens the descriptions of tools may take, by tier; 0 is a tier that is not known.
// A tool that comes later in the catalog and does not fit any more is not offered there.
var toolBudget = [topTier + 1]int{8000, 600, 2000, 3000, 5000, 8000}

// offers is the tools of each mode by its name, and of each tier: the smallest gets brief
// descriptions, the others full ones. helpers tells whether there are sub-sessions.
func offers(full, brief []llm.ToolSpec, helpers bool) map[string][topTier + 1]agent.Offer {
	out := map[string][topTier + 1]agent.Offer{}
	for _, m := range settings.Modes() {
		var of [topTier + 1]agent.Offer
		for tier := range of {
			all := full
			if tier == 1 {
				all = brief
			}
			for _, s := range policyOf(m).Filter(all) {
				if (tier == 0 || tier >= tool.Tier(s.Name)) &&
					(helpers || s.Name != tool.SpawnSubSession) && of[tier].Tokens+agent.DescriptionTokens(s) <= toolBudget[tier] {
					of[tier].Add(s)
				}
			}
		}
		out[m.Name] = of
	}
	return out
}
