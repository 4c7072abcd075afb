package dream

import (
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// harvestable reports whether the request that asks for facts may show words of m. Of people
// these are their own words, whatever came with them; level is that of the sender.
func harvestable(m history.Message, level trust.Integrity) bool {
	switch m.Role {
	case llm.User:
		return m.Sender != "" && tool.Allows(level, tool.Harvest)
	case llm.Assistant:
		return tool.Allows(m.Label.Integrity, tool.Harvest)
	}
	return false
}

// levelOf is how far the own words of a message are trusted: as its sender, but as an owner only
// when the message was an owner's. Others may have written it in an owner's name.
func levelOf(sender, message trust.Integrity) trust.Integrity {
	return min(sender, max(message, trust.User))
}

// integrity is that of what is learned from b: of its least trusted sender.
func (b *batch) integrity() trust.Integrity {
	least := trust.Owner
	for _, t := range b.turns {
		least = min(least, t.level)
	}
	return least
}
