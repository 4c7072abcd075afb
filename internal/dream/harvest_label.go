package dream

import (
	"context"
	"fmt"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

// harvestable reports whether the request that asks for facts may show words of m, of which
// it shows Text alone. sender is the integrity of m's sender. foreign holds, for each
// conversation, the first message from which on foreign text is in the prompt: what the
// assistant says after it may be that text again.
func harvestable(m history.Message, sender trust.Integrity, foreign map[int64]int64) bool {
	switch m.Role {
	case llm.User:
		return m.Sender != "" && sender >= trust.User
	case llm.Assistant:
		first, found := foreign[m.Conversation]
		return !found || m.ID < first
	}
	return false
}

// harmlessTools are the tools whose results hold no text of others, as JSON.
const harmlessTools = `["append_memory", "task", "goal", "add_skill", "stay_silent"]`

// foreignFrom finds, for each conversation of room, the first message that brought text into
// the prompt that no person wrote to the assistant: files, quotes, results of tools, system
// events. A conversation that began with a summary has such text from its beginning.
func (h *Harvester) foreignFrom(ctx context.Context, room string) (map[int64]int64, error) {
	rows, err := h.cfg.DB.QueryContext(ctx, `SELECT conversation, min(id) FROM (
		SELECT conversation, id FROM message WHERE room = ?1 AND (files <> '' OR quoted <> '' OR bystanders <> 0
			OR role = 'user' AND sender = ''
			OR calls <> '' AND EXISTS (SELECT 1 FROM json_each(calls) WHERE value ->> 'name' NOT IN (SELECT value FROM json_each(?2))))
		UNION ALL SELECT conversation, 0 FROM compaction WHERE room = ?1 AND messages = 0 AND shortened = 0) GROUP BY conversation`, room, harmlessTools)
	if err != nil {
		return nil, fmt.Errorf("harvest: %w", err)
	}
	defer rows.Close()
	first := map[int64]int64{}
	for rows.Next() {
		var conversation, id int64
		if err := rows.Scan(&conversation, &id); err != nil {
			return nil, fmt.Errorf("harvest: %w", err)
		}
		first[conversation] = id
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("harvest: %w", err)
	}
	return first, nil
}

// integrity is that of what is learned from b: of its least trusted sender.
func (b *batch) integrity() trust.Integrity {
	least := trust.Owner
	for _, t := range b.turns {
		least = min(least, t.level)
	}
	return least
}
