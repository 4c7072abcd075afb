package session

import (
	"reverie/internal/llm"
	"reverie/internal/settings"
	"reverie/internal/tool"
	"slices"
)

// policy is which tools there are in the mode.
func policyOf(m settings.Mode) tool.Policy {
	p := tool.Policy{Allow: m.Allow, Deny: m.Deny, Where: m.Name + " mode"}
	if free := slices.IndexFunc(settings.Modes(), func(o settings.Mode) bool { return len(o.Allow)+len(o.Deny) == 0 }); free >= 0 {
		p.Else = "`!mode " + settings.Modes()[free].Name + "` offers it"
	}
	return p
}

// offer is the tools that a model is told about.
type offer struct {
	specs  []llm.ToolSpec
	names  []string
	tokens int // what the descriptions take
}

// costly are tools that the smallest windows have no room to describe, and that a
// model can do without (it reports on its goal in lines of its text), and from which
// tier on they are offered.
var costly = map[string]int{"goal": 2, "search_memory": 2, tool.StaySilent: 2, tool.SpawnSubSession: 3, tool.SendFile: 2, tool.SetMode: 4}

const topTier = 5

// toolBudget is how many tokens the descriptions of tools may take, by tier; 0 is a tier that is not known.
// A tool that comes later in the catalog and does not fit any more is not offered there.
var toolBudget = [topTier + 1]int{8000, 600, 2000, 3000, 5000, 8000}

// offers is the tools of each mode by its name, and of each tier: the smallest gets brief
// descriptions, the others full ones. helpers tells whether there are sub-sessions.
func offers(full, brief []llm.ToolSpec, helpers bool) map[string][topTier + 1]offer {
	out := map[string][topTier + 1]offer{}
	for _, m := range settings.Modes() {
		var of [topTier + 1]offer
		for tier := range of {
			all := full
			if tier == 1 {
				all = brief
			}
			for _, s := range policyOf(m).Of(all) {
				if (tier == 0 || tier >= costly[s.Name]) && (helpers || s.Name != tool.SpawnSubSession) && of[tier].tokens+tokensOf(s) <= toolBudget[tier] {
					of[tier].add(s)
				}
			}
		}
		out[m.Name] = of
	}
	return out
}

func (o *offer) add(s llm.ToolSpec) {
	o.specs = append(o.specs, s)
	o.names = append(o.names, s.Name)
	o.tokens += tokensOf(s)
}

func tokensOf(s llm.ToolSpec) int {
	return llm.EstimateTokens(s.Name) + llm.EstimateTokens(s.Description) + llm.EstimateTokens(string(s.Parameters))
}
